// A CUDA program that does what its standard input says, one command a line, one answer a line:
// "ok VALUE" or "error CODE".
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "simgpu/driver_calls.h"

namespace {

using namespace simgpu;
using simgpu_test::Library;

const Library& cuda() {
  static const Library library("libcuda.so.1");
  return library;
}
const Library& nvml() {
  static const Library library("libnvidia-ml.so.1");
  return library;
}

struct Failed {
  int code;
};
void must(int code) {
  if (code != 0) throw Failed{code};
}

using Words = std::istringstream;
template <class T = std::uint64_t>
T next(Words& words) {
  T value{};
  words >> value;
  return value;
}

CUmodule module() {
  static CUmodule loaded = nullptr;
  if (loaded == nullptr)
    must(cuda().call("cuModuleLoadData", &loaded, static_cast<const void*>("image")));
  return loaded;
}

void launch(const char* kernel, std::vector<void*> params, CUstream stream = nullptr) {
  CUfunction function = nullptr;
  must(cuda().call("cuModuleGetFunction", &function, module(), kernel));
  must(cuda().call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, params.data(),
                   static_cast<void**>(nullptr)));
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string start(Words& words) {
  auto device = next<int>(words);
  CUcontext context = nullptr;
  must(cuda().call("cuInit", 0u));
  must(cuda().call("cuDevicePrimaryCtxRetain", &context, device));
  must(cuda().call("cuCtxSetCurrent", context));
  return "";
}

std::string allocate(Words& words) {
  CUdeviceptr at = 0;
  must(cuda().call("cuMemAlloc_v2", &at, static_cast<std::size_t>(next(words))));
  return number(at);
}

std::string release(Words& words) {
  must(cuda().call("cuMemFree_v2", static_cast<CUdeviceptr>(next(words))));
  return "";
}

// A word that depends on its place, so that no byte may be lost or moved.
std::uint64_t patternAt(std::uint64_t i, std::uint64_t seed) {
  return (i + 1) * 0x9e3779b97f4a7c15u ^ seed;
}

std::string pattern(Words& words) {
  auto at = next(words);
  auto bytes = next(words);
  auto seed = next(words);
  std::vector<std::uint64_t> values(bytes / 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = patternAt(i, seed);
  must(cuda().call("cuMemcpyHtoD_v2", static_cast<CUdeviceptr>(at),
                   static_cast<const void*>(values.data()), static_cast<std::size_t>(bytes)));
  return "";
}

std::string check(Words& words) {
  auto at = next(words);
  auto bytes = next(words);
  auto seed = next(words);
  std::vector<std::uint64_t> values(bytes / 8);
  must(cuda().call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()),
                   static_cast<CUdeviceptr>(at), static_cast<std::size_t>(bytes)));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != patternAt(i, seed)) return "differs at word " + number(i);
  return "same";
}

// The words of a range are all this.
std::string allAre(Words& words) {
  auto at = next(words);
  auto bytes = next(words);
  auto value = next(words);
  std::vector<std::uint32_t> values(bytes / 4);
  must(cuda().call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()),
                   static_cast<CUdeviceptr>(at), static_cast<std::size_t>(bytes)));
  for (std::uint32_t v : values)
    if (v != value) return "no";
  return "yes";
}

std::string spin(Words& words) {
  std::uint64_t microseconds = next(words);
  launch("simgpu_spin", {&microseconds});
  return "";
}

std::string synchronize(Words&) {
  must(cuda().call("cuCtxSynchronize"));
  return "";
}

std::string memoryInfo(Words&) {
  std::size_t free = 0;
  std::size_t total = 0;
  must(cuda().call("cuMemGetInfo_v2", &free, &total));
  return number(free) + " " + number(total);
}

std::string anonymousBytes(Words&) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  std::uint64_t kilobytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    std::sscanf(line, "RssAnon: %" SCNu64, &kilobytes);
  std::fclose(file);
  return number(kilobytes * 1024);
}

std::string deviceName(Words&) {
  char name[64] = {};
  must(cuda().call("cuDeviceGetName", static_cast<char*>(name), 64, 0));
  return name;
}

std::string deviceCount(Words&) {
  int count = 0;
  must(cuda().call("cuInit", 0u));
  must(cuda().call("cuDeviceGetCount", &count));
  return std::to_string(count);
}

std::string busId(Words& words) {
  char text[32] = {};
  must(cuda().call("cuDeviceGetPCIBusId", static_cast<char*>(text), 32, next<int>(words)));
  return text;
}

// What a child of fork gets from the driver.
std::string inChild(Words&) {
  pid_t child = ::fork();
  if (child == 0) {
    CUdeviceptr at = 0;
    ::_exit(cuda().call("cuMemAlloc_v2", &at, static_cast<std::size_t>(4096)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return std::to_string(WEXITSTATUS(status));
}

std::string threadId(Words&) {
  static std::atomic<int> tid{0};
  static std::thread* waiting = new std::thread([] {
    tid = ::gettid();
    tid.notify_all();
    ::pause();
  });
  (void)waiting;
  tid.wait(0);
  return std::to_string(tid);
}

std::string state(Words& words) {
  CUprocessState state{};
  must(cuda().call("cuCheckpointProcessGetState", next<int>(words), &state));
  return std::to_string(state);
}

std::string lock(Words& words) {
  int pid = next<int>(words);
  CUcheckpointLockArgs args{};
  args.timeoutMs = next<unsigned>(words);
  must(cuda().call("cuCheckpointProcessLock", pid, &args));
  return "";
}

template <class Args>
std::string checkpointCall(const char* name, Words& words) {
  must(cuda().call(name, next<int>(words), static_cast<Args*>(nullptr)));
  return "";
}

std::string helperThread(Words& words) {
  int tid = 0;
  must(cuda().call("cuCheckpointProcessGetRestoreThreadId", next<int>(words), &tid));
  return std::to_string(tid);
}

std::string allocateManaged(Words& words) {
  CUdeviceptr at = 0;
  must(cuda().call("cuMemAllocManaged", &at, static_cast<std::size_t>(next(words)), 1u));
  return number(at);
}

std::string pin(Words& words) {
  void* at = nullptr;
  must(cuda().call("cuMemHostAlloc", &at, static_cast<std::size_t>(next(words)), 0u));
  return "";
}

std::string offer(Words& words) {
  char handle[64];
  must(cuda().call("cuIpcGetMemHandle", static_cast<void*>(handle),
                   static_cast<CUdeviceptr>(next(words))));
  return "";
}

std::string multicast(Words&) {
  CUmemGenericAllocationHandle handle = 0;
  must(cuda().call("cuMulticastCreate", &handle, static_cast<const void*>(&handle)));
  return "";
}

nvmlDevice_t nvmlDevice(Words& words) {
  nvmlDevice_t device = nullptr;
  must(nvml().call("nvmlInit_v2"));
  must(nvml().call("nvmlDeviceGetHandleByIndex_v2", next<unsigned>(words), &device));
  return device;
}

std::string nvmlMemory(Words& words) {
  nvmlMemory_t memory{};
  must(nvml().call("nvmlDeviceGetMemoryInfo", nvmlDevice(words), &memory));
  return number(memory.total) + " " + number(memory.used) + " " + number(memory.free);
}

std::string listed(const char* name, Words& words) {
  nvmlProcessInfo_t infos[16];
  unsigned count = 16;
  must(nvml().call(name, nvmlDevice(words), &count, static_cast<nvmlProcessInfo_t*>(infos)));
  std::string all;
  for (unsigned i = 0; i < count; ++i)
    all += (i > 0 ? " " : "") + number(infos[i].pid) + ":" + number(infos[i].usedGpuMemory);
  return all;
}

std::string nvmlProcesses(Words& words) {
  return listed("nvmlDeviceGetComputeRunningProcesses_v3", words);
}

std::string nvmlMpsClients(Words& words) {
  return listed("nvmlDeviceGetMPSComputeRunningProcesses_v3", words);
}

const std::map<std::string, std::function<std::string(Words&)>>& commands() {
  static const std::map<std::string, std::function<std::string(Words&)>> all = {
      {"start", start},
      {"alloc", allocate},
      {"free", release},
      {"pattern", pattern},
      {"check", check},
      {"all-are", allAre},
      {"spin", spin},
      {"sync", synchronize},
      {"memory", memoryInfo},
      {"anonymous", anonymousBytes},
      {"name", deviceName},
      {"count", deviceCount},
      {"bus", busId},
      {"in-child", inChild},
      {"thread", threadId},
      {"state", state},
      {"lock", lock},
      {"helper", helperThread},
      {"checkpoint",
       [](Words& w) {
         return checkpointCall<CUcheckpointCheckpointArgs>("cuCheckpointProcessCheckpoint", w);
       }},
      {"restore",
       [](Words& w) {
         return checkpointCall<CUcheckpointRestoreArgs>("cuCheckpointProcessRestore", w);
       }},
      {"unlock",
       [](Words& w) {
         return checkpointCall<CUcheckpointUnlockArgs>("cuCheckpointProcessUnlock", w);
       }},
      {"nvml-memory", nvmlMemory},
      {"nvml-processes", nvmlProcesses},
      {"nvml-mps", nvmlMpsClients},
      {"managed", allocateManaged},
      {"pin", pin},
      {"offer", offer},
      {"multicast", multicast},
  };
  return all;
}

std::string answer(const std::string& line) {
  Words words(line);
  auto command = next<std::string>(words);
  auto it = commands().find(command);
  if (it == commands().end()) return "unknown command " + command;
  try {
    std::string value = it->second(words);
    return value.empty() ? "ok" : "ok " + value;
  } catch (const Failed& failed) {
    return "error " + std::to_string(failed.code);
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << std::endl;
  ::_exit(0);
}
