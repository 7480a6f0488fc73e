#include "device/nvml_library.h"

#include <dlfcn.h>

namespace ts::nvml {
namespace {

template <class F>
bool find(void* library, const char* name, F& out) {
  *reinterpret_cast<void**>(&out) = dlsym(library, name);
  return out != nullptr;
}

// The driver keeps old entry points with their old structs: the newest one that exists is the one
// whose struct we know.
void findProcesses(void* library, Library& out) {
  if (find(library, "nvmlDeviceGetComputeRunningProcesses_v3", out.processesV2)) return;
  if (find(library, "nvmlDeviceGetComputeRunningProcesses_v2", out.processesV2)) return;
  find(library, "nvmlDeviceGetComputeRunningProcesses", out.processesV1);
}

void findMpsClients(void* library, Library& out) {
  if (find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", out.mpsClients)) return;
  find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v2", out.mpsClients);
}

template <class F>
void need(void* library, const char* name, F& out, std::string& missing) {
  if (!find(library, name, out)) missing += std::string(missing.empty() ? "" : ", ") + name;
}

}  // namespace

std::string Library::nameOf(Return code) const {
  const char* text = errorString != nullptr ? errorString(code) : nullptr;
  std::string number = std::to_string(code);
  return text != nullptr ? std::string(text) + " (" + number + ")" : "NVML error " + number;
}

Library openLibrary(const std::string& path) {
  Library out;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    out.error = "no NVIDIA driver found: " + std::string(why != nullptr ? why : path);
    return out;
  }
  std::string missing;
  need(library, "nvmlInit_v2", out.init, missing);
  need(library, "nvmlDeviceGetCount_v2", out.deviceGetCount, missing);
  need(library, "nvmlDeviceGetHandleByIndex_v2", out.deviceGetHandleByIndex, missing);
  need(library, "nvmlDeviceGetUUID", out.deviceGetUuid, missing);
  need(library, "nvmlDeviceGetMemoryInfo", out.deviceGetMemoryInfo, missing);
  find(library, "nvmlErrorString", out.errorString);
  find(library, "nvmlSystemGetDriverVersion", out.systemGetDriverVersion);
  find(library, "nvmlDeviceGetName", out.deviceGetName);
  find(library, "nvmlDeviceGetPciInfo_v3", out.deviceGetPciInfo);
  find(library, "nvmlDeviceGetPersistenceMode", out.deviceGetPersistenceMode);
  find(library, "nvmlDeviceGetMigMode", out.deviceGetMigMode);
  findProcesses(library, out);
  findMpsClients(library, out);
  if (!missing.empty()) out.error = path + " is too old: it lacks " + missing;
  return out;
}

}  // namespace ts::nvml
