// A libnvidia-ml.so.1 that obeys a script. Built once for each version of the process list.
#include "fake_nvml.h"

#include <cstdio>

#include "device/nvml_abi.h"

using namespace ts::nvml;
using ts::test::FakeNvml;

namespace {

FakeNvml& script() {
  static FakeNvml it;
  return it;
}

constexpr Return kGpuIsLost = 15;

Device deviceOf(unsigned int index) {
  return reinterpret_cast<Device>(std::size_t{index} + 1);
}
std::size_t indexOf(Device device) {
  return reinterpret_cast<std::size_t>(device) - 1;
}

template <class Info>
Return list(Device device, unsigned int* count, Info* out,
            const std::vector<ts::test::FakeProcess>& all = script().processes) {
  if (script().list != kSuccess) return script().list;
  unsigned int there = indexOf(device) == 0 ? static_cast<unsigned int>(all.size()) : 0;
  unsigned int room = *count;
  *count = there;
  if (room < there) return kInsufficientSize;
  for (unsigned int i = 0; i < there; ++i) {
    out[i] = {};
    out[i].pid = all[i].pid;
    out[i].usedGpuMemory = all[i].bytes;
  }
  return kSuccess;
}

}  // namespace

namespace ts::test {
extern "C" FakeNvml* fakeNvmlScript() {
  return &script();
}
}  // namespace ts::test

extern "C" {

Return nvmlInit_v2() {
  return script().init;
}
const char* nvmlErrorString(Return code) {
  return code == kGpuIsLost ? "GPU is lost" : "fake error";
}

Return nvmlSystemGetDriverVersion(char* out, unsigned int size) {
  std::snprintf(out, size, "580.95.05");
  return kSuccess;
}
Return nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return kSuccess;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* out) {
  if (index == 1 && script().secondLost) return kGpuIsLost;
  *out = deviceOf(index);
  return kSuccess;
}
Return nvmlDeviceGetUUID(Device device, char* out, unsigned int size) {
  std::snprintf(out, size, "GPU-%zu", indexOf(device));
  return kSuccess;
}
Return nvmlDeviceGetName(Device, char* out, unsigned int size) {
  std::snprintf(out, size, "Fake H200");
  return kSuccess;
}
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* out) {
  std::snprintf(out->busId, sizeof out->busId, "00000000:%02zX:00.0", indexOf(device) + 1);
  return kSuccess;
}
Return nvmlDeviceGetMemoryInfo(Device, Memory* out) {
  *out = {.total = 1000, .free = 700, .used = 300};
  return script().memory;
}
Return nvmlDeviceGetPersistenceMode(Device, int* on) {
  *on = 1;
  return kSuccess;
}

#if LIST_VERSION == 1
Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned int* n, ProcessInfoV1* out) {
  return list(device, n, out);
}
#elif LIST_VERSION == 2
Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned int* n, ProcessInfoV2* out) {
  return list(device, n, out);
}
#else
// The old name is still there and fills the old struct: it must not be taken for the new one.
Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned int* n, ProcessInfoV1* out) {
  return list(device, n, out);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* n, ProcessInfoV2* out) {
  return list(device, n, out);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned int* n,
                                                  ProcessInfoV2* out) {
  return list(device, n, out, script().mpsClients);
}
#endif

}  // extern "C"
