#include <cstring>

#include "simgpu/api.h"
#include "simgpu/host_memory.h"

namespace simgpu {
namespace {

struct IpcHandle {
  char reserved[64];
};

// What the driver says of a pointer. Host memory that it does not know has no attributes.
CUresult attributeOf(Driver& driver, void* out, int which, CUdeviceptr at) {
  auto place = driver.memory.find(at);
  if (!place && !hostMemory().knows(reinterpret_cast<void*>(at))) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) =
          place ? reinterpret_cast<CUcontext>(const_cast<Context*>(place->block->owner)) : nullptr;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = place ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = at;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (place) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(out) = reinterpret_cast<void*>(at);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(out) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      for (int d = 0; place && d < driver.deviceCount(); ++d)
        if (driver.card(d) == place->block->card) *static_cast<int*>(out) = d;
      if (!place) *static_cast<int*>(out) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      if (!place) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(out) = reinterpret_cast<CUdeviceptr>(place->at);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      if (!place) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<std::size_t*>(out) = place->asked;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(out) = 1;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

SIMGPU_API CUresult cuPointerGetAttribute(void* out, int which, CUdeviceptr at) {
  return plainCall([&](Driver& driver) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : attributeOf(driver, out, which, at);
  });
}

SIMGPU_API CUresult cuPointerGetAttributes(unsigned count, int* which, void** out, CUdeviceptr at) {
  return plainCall([&](Driver& driver) {
    for (unsigned i = 0; i < count; ++i)
      if (CUresult error = attributeOf(driver, out[i], which[i], at);
          error == CUDA_ERROR_NOT_SUPPORTED)
        return error;
    return CUDA_SUCCESS;
  });
}

// Device memory is offered to other processes where the card says so; to open what another offers
// is what this card cannot do.
SIMGPU_API CUresult cuIpcGetMemHandle(void* out, CUdeviceptr at) {
  return deviceCall("cuIpcGetMemHandle", [&](Driver& driver, Context& context) {
    if (out == nullptr || !driver.memory.find(at)) return CUDA_ERROR_INVALID_VALUE;
    std::memset(out, 0, sizeof(IpcHandle));
    std::memcpy(out, &at, sizeof at);
    return useFeature(driver, context, &Settings::ipc, kUsedIpc);
  });
}

// An object that several cards write at once, as NVLS wants it. It counts as used from here on.
SIMGPU_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out, const void* properties) {
  return deviceCall("cuMulticastCreate", [&](Driver& driver, Context& context) {
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = useFeature(driver, context, &Settings::nvls, kUsedNvls);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<std::uintptr_t>(&context);
    return result;
  });
}

SIMGPU_API CUresult cuIpcCloseMemHandle(CUdeviceptr) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuIpcGetEventHandle(void*, CUevent) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIMGPU_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, IpcHandle, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuIpcOpenEventHandle(CUevent*, IpcHandle) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIMGPU_API CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, int,
                                                 unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace simgpu
