#include <sys/mman.h>

#include <map>

#include "simgpu/api.h"
#include "simgpu/host_memory.h"

namespace simgpu {
namespace {

CUresult allocateIn(Driver& driver, Context& context, CUdeviceptr* out, std::size_t bytes) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto most = context.card->settings()->mappings;
  if (most && driver.memory.count() >= *most) return CUDA_ERROR_OUT_OF_MEMORY;
  return driver.memory.allocate(context, *context.card, bytes, *out);
}

CUresult allocate(const char* name, CUdeviceptr* out, std::size_t bytes) {
  return deviceCall(name, [&](Driver& driver, Context& context) {
    return allocateIn(driver, context, out, bytes);
  });
}

// The pages that a machine may pin for one process are counted.
bool mayPin(const Context& context, std::size_t bytes) {
  auto settings = context.card->settings();
  std::uint64_t all = hostMemory().pinned() + bytes;
  return all <= settings->lockedMemory.value_or(all) && all <= settings->hostMemory.value_or(all);
}

}  // namespace

SIMGPU_API CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  return allocate("cuMemAlloc", out, bytes);
}

// Managed memory is device memory here: reachable from both sides, counted on the card.
SIMGPU_API CUresult cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned) {
  return deviceCall("cuMemAllocManaged", [&](Driver& driver, Context& context) {
    CUresult error = useFeature(driver, context, &Settings::uvm, kUsedUvm);
    return error != CUDA_SUCCESS ? error : allocateIn(driver, context, out, bytes);
  });
}

SIMGPU_API CUresult cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width,
                                       std::size_t height, unsigned) {
  if (pitch == nullptr || width == 0) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return allocate("cuMemAllocPitch", out, *pitch * height);
}

SIMGPU_API CUresult cuMemFree_v2(CUdeviceptr at) {
  return deviceCall("cuMemFree", [&](Driver& driver, Context& context) {
    driver.streams.awaitAllOf(context);
    return driver.memory.free(at);
  });
}

SIMGPU_API CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream) {
  return allocate("cuMemAllocAsync", out, bytes);
}
SIMGPU_ALIAS(cuMemAllocAsync_ptsz, cuMemAllocAsync);

SIMGPU_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool,
                                            CUstream) {
  return allocate("cuMemAllocFromPoolAsync", out, bytes);
}
SIMGPU_ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);

SIMGPU_API CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle) {
  return streamCall("cuMemFreeAsync", handle, [&](Driver& driver, auto stream) {
    auto place = driver.memory.find(at);
    bool good = place && place->ownsRange && reinterpret_cast<CUdeviceptr>(place->at) == at;
    if (!good) return CUDA_ERROR_INVALID_VALUE;
    driver.streams.submit(stream, [&driver, at] { driver.memory.free(at); });
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuMemFreeAsync_ptsz, cuMemFreeAsync);

SIMGPU_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return plainCall([&](Driver& driver) {
    Card* card = driver.card(device);
    if (card == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUmemoryPool>(card);
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuDeviceGetMemPool, cuDeviceGetDefaultMemPool);

SIMGPU_API CUresult cuMemPoolSetAttribute(CUmemoryPool, int, void*) {
  return CUDA_SUCCESS;
}
SIMGPU_API CUresult cuMemPoolTrimTo(CUmemoryPool, std::size_t) {
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return deviceCall("cuMemGetInfo", [&](Driver& driver, Context& context) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.host.reclaim();
    *free = context.card->freeBytes();
    *total = context.card->totalBytes();
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr at) {
  return deviceCall("cuMemGetAddressRange", [&](Driver& driver, Context&) {
    auto place = driver.memory.find(at);
    if (!place) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = reinterpret_cast<CUdeviceptr>(place->at);
    if (size != nullptr) *size = place->asked;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  return deviceCall("cuMemHostAlloc", [&](Driver&, Context& context) {
    if (!mayPin(context, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : hostMemory().allocate(bytes, *out);
  });
}

SIMGPU_API CUresult cuMemAllocHost_v2(void** out, std::size_t bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

SIMGPU_API CUresult cuMemFreeHost(void* at) {
  return gatedCall("cuMemFreeHost", [&](Driver&) { return hostMemory().free(at); });
}

SIMGPU_API CUresult cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned) {
  return deviceCall("cuMemHostRegister", [&](Driver&, Context& context) {
    return mayPin(context, bytes) ? hostMemory().enlist(at, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

SIMGPU_API CUresult cuMemHostUnregister(void* at) {
  return deviceCall("cuMemHostUnregister",
                    [&](Driver&, Context&) { return hostMemory().strike(at); });
}

SIMGPU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* at, unsigned) {
  return deviceCall("cuMemHostGetDevicePointer", [&](Driver&, Context&) {
    if (out == nullptr || !hostMemory().knows(at)) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUdeviceptr>(at);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuMemHostGetFlags(unsigned* out, void* at) {
  if (out == nullptr || !hostMemory().knows(at)) return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  return CUDA_SUCCESS;
}

SIMGPU_ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

}  // namespace simgpu
