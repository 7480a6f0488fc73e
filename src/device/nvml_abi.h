// What we use of NVML's binary interface, in our own words: no header of NVIDIA's is needed to
// build.
#pragma once

#include <cstdint>

namespace ts::nvml {

struct DeviceHandle;  // opaque
using Device = DeviceHandle*;
using Return = int;

constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;

// "The driver does not say": NVML's answer where another guest or container owns the process.
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // with what the driver itself keeps
};

struct PciInfo {  // of nvmlDeviceGetPciInfo_v3
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};

struct ProcessInfoV1 {  // of nvmlDeviceGetComputeRunningProcesses, without a suffix
  unsigned int pid;
  unsigned long long usedGpuMemory;
};

struct ProcessInfoV2 {  // of the suffixes _v2 and _v3
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

static_assert(sizeof(Memory) == 24);
static_assert(sizeof(PciInfo) == 68);
static_assert(sizeof(ProcessInfoV1) == 16);
static_assert(sizeof(ProcessInfoV2) == 24);

}  // namespace ts::nvml
