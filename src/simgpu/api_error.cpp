#include <span>

#include "simgpu/api.h"

namespace simgpu {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

#define SIMGPU_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    SIMGPU_ERROR(CUDA_SUCCESS, "no error"),
    SIMGPU_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    SIMGPU_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    SIMGPU_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    SIMGPU_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    SIMGPU_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    SIMGPU_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    SIMGPU_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    SIMGPU_ERROR(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    SIMGPU_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
    SIMGPU_ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
    SIMGPU_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    SIMGPU_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                 "peer access is not supported between these two devices"),
    SIMGPU_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    SIMGPU_ERROR(CUDA_ERROR_OPERATING_SYSTEM,
                 "OS call failed or operation not supported on this OS"),
    SIMGPU_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    SIMGPU_ERROR(CUDA_ERROR_ILLEGAL_STATE,
                 "the operation cannot be performed in the present state"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    SIMGPU_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    SIMGPU_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    SIMGPU_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
                 "cannot set while device is active in this process"),
    SIMGPU_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    SIMGPU_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                 "part or all of the requested memory range is already mapped"),
    SIMGPU_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                 "pointer does not correspond to a registered memory region"),
    SIMGPU_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    SIMGPU_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    SIMGPU_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    SIMGPU_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

CUresult lookUp(CUresult code, const char** out, const char* ErrorText::*field) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  for (const ErrorText& e : kErrors)
    if (e.code == code) *out = e.*field;
  return *out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult cuGetErrorName(CUresult code, const char** out) {
  return lookUp(code, out, &ErrorText::name);
}

SIMGPU_API CUresult cuGetErrorString(CUresult code, const char** out) {
  return lookUp(code, out, &ErrorText::text);
}

}  // namespace simgpu
