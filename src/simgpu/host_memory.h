// Host memory that the driver knows: what it allocated and what programs registered.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "simgpu/cuda_abi.h"

namespace simgpu {

class HostMemory {
public:
  CUresult allocate(std::uint64_t bytes, void*& out);
  CUresult free(void* at);
  CUresult enlist(void* at, std::uint64_t bytes);  // cuMemHostRegister
  CUresult strike(void* at);
  bool knows(const void* at);
  std::uint64_t pinned();

private:
  struct Range {
    std::uint64_t bytes;
    bool ours;
  };
  std::map<std::uintptr_t, Range>::iterator holding(std::uintptr_t at);

  std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_;
};

HostMemory& hostMemory();

}  // namespace simgpu
