#include "simgpu/host_memory.h"

#include <sys/mman.h>

namespace simgpu {

HostMemory& hostMemory() {
  static auto& memory = *new HostMemory;
  return memory;
}

CUresult HostMemory::allocate(std::uint64_t bytes, void*& out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex_);
  ranges_[reinterpret_cast<std::uintptr_t>(at)] = {bytes, true};
  out = at;
  return CUDA_SUCCESS;
}

CUresult HostMemory::free(void* at) {
  std::lock_guard lock(mutex_);
  auto it = ranges_.find(reinterpret_cast<std::uintptr_t>(at));
  if (it == ranges_.end() || !it->second.ours) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(at, it->second.bytes);
  ranges_.erase(it);
  return CUDA_SUCCESS;
}

CUresult HostMemory::enlist(void* at, std::uint64_t bytes) {
  auto first = reinterpret_cast<std::uintptr_t>(at);
  if (at == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  auto next = ranges_.lower_bound(first);
  bool overlaps =
      holding(first) != ranges_.end() || (next != ranges_.end() && next->first < first + bytes);
  if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  ranges_[first] = {bytes, false};
  return CUDA_SUCCESS;
}

CUresult HostMemory::strike(void* at) {
  std::lock_guard lock(mutex_);
  auto it = ranges_.find(reinterpret_cast<std::uintptr_t>(at));
  if (it == ranges_.end() || it->second.ours) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  ranges_.erase(it);
  return CUDA_SUCCESS;
}

std::uint64_t HostMemory::pinned() {
  std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& [at, range] : ranges_) all += range.bytes;
  return all;
}

bool HostMemory::knows(const void* at) {
  std::lock_guard lock(mutex_);
  return holding(reinterpret_cast<std::uintptr_t>(at)) != ranges_.end();
}

std::map<std::uintptr_t, HostMemory::Range>::iterator HostMemory::holding(std::uintptr_t at) {
  auto it = ranges_.upper_bound(at);
  if (it == ranges_.begin()) return ranges_.end();
  --it;
  return at < it->first + it->second.bytes ? it : ranges_.end();
}

}  // namespace simgpu
