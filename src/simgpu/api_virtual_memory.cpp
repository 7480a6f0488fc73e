#include <sys/mman.h>

#include "simgpu/api.h"

namespace simgpu {
namespace {

constexpr std::size_t kGranularity = 2 << 20;

Card* cardOf(Driver& driver, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? driver.card(location.id) : nullptr;
}

int protectionOf(CUmemAccess_flags flags) {
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return PROT_READ | PROT_WRITE;
  return flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

}  // namespace

SIMGPU_API CUresult cuMemGetAllocationGranularity(std::size_t* out, const CUmemAllocationProp* prop,
                                                  int) {
  return plainCall([&](Driver& driver) {
    if (out == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (cardOf(driver, prop->location) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = kGranularity;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment,
                                        CUdeviceptr, unsigned long long flags) {
  return gatedCall("cuMemAddressReserve", [&](Driver& driver) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.reserve(bytes, alignment, *out);
  });
}

SIMGPU_API CUresult cuMemAddressFree(CUdeviceptr at, std::size_t bytes) {
  return gatedCall("cuMemAddressFree",
                   [&](Driver& driver) { return driver.memory.unreserve(at, bytes); });
}

SIMGPU_API CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  return gatedCall("cuMemCreate", [&](Driver& driver) {
    if (out == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    // Handles that other processes could open are beyond this card.
    if (prop->requestedHandleTypes != 0) return CUDA_ERROR_NOT_SUPPORTED;
    Card* card = cardOf(driver, prop->location);
    if (card == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return driver.memory.create(*card, bytes, *out);
  });
}

SIMGPU_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return gatedCall("cuMemRelease", [&](Driver& driver) { return driver.memory.release(handle); });
}

SIMGPU_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* at) {
  return gatedCall("cuMemRetainAllocationHandle", [&](Driver& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.retain(reinterpret_cast<CUdeviceptr>(at), *out);
  });
}

SIMGPU_API CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return gatedCall("cuMemMap", [&](Driver& driver) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.map(at, bytes, offset, handle);
  });
}

SIMGPU_API CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  return gatedCall("cuMemUnmap", [&](Driver& driver) { return driver.memory.unmap(at, bytes); });
}

SIMGPU_API CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* desc,
                                   std::size_t count) {
  return gatedCall("cuMemSetAccess", [&](Driver& driver) {
    if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (cardOf(driver, desc->location) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return driver.memory.setAccess(at, bytes, protectionOf(desc->flags));
  });
}

SIMGPU_API CUresult cuMemGetAccess(unsigned long long* out, const CUmemLocation* location,
                                   CUdeviceptr at) {
  return gatedCall("cuMemGetAccess", [&](Driver& driver) {
    auto place = driver.memory.find(at);
    if (out == nullptr || location == nullptr || !place) return CUDA_ERROR_INVALID_VALUE;
    *out = place->protection == PROT_NONE   ? CU_MEM_ACCESS_FLAGS_PROT_NONE
           : place->protection == PROT_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                            : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

}  // namespace simgpu
