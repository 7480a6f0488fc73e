// Copies and fills: who may touch what, over which link.
#pragma once

#include <cstdint>
#include <functional>

#include "simgpu/driver.h"

namespace simgpu {

struct Copy {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::uint64_t bytes = 0;
};

// Which ends a copy says are device memory; those that are not known are looked up.
enum class Ends { HostToDevice, DeviceToHost, DeviceToDevice, Any };

// CUDA_SUCCESS when every device end is device memory of this process.
CUresult checkCopy(Driver& driver, const Copy& copy, Ends ends);
void runCopy(Driver& driver, Stream& stream, const Copy& copy);

template <class Value>
void fillWith(CUdeviceptr to, Value value, std::uint64_t count) {
  auto* at = reinterpret_cast<Value*>(to);
  for (std::uint64_t i = 0; i < count; ++i) at[i] = value;
}

}  // namespace simgpu
