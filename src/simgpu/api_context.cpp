#include <algorithm>

#include "simgpu/api.h"

namespace simgpu {
namespace {

constexpr unsigned kContextApiVersion = 13000;

CUcontext handleOf(const std::shared_ptr<Context>& context) {
  return reinterpret_cast<CUcontext>(context.get());
}

std::shared_ptr<Context>* primaryOf(Driver& driver, CUdevice device) {
  if (driver.card(device) == nullptr) return nullptr;
  return &driver.primaries[static_cast<std::size_t>(device)];
}

CUresult retainPrimary(Driver& driver, CUcontext* out, CUdevice device) {
  std::lock_guard lock(driver.primaryMutex);
  auto* primary = primaryOf(driver, device);
  if (out == nullptr || primary == nullptr)
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  CUresult error = CUDA_SUCCESS;
  if (!*primary) *primary = driver.makeContext(device, 0, error);
  if (error != CUDA_SUCCESS) return error;
  (*primary)->primary = true;
  ++(*primary)->references;
  *out = handleOf(*primary);
  return CUDA_SUCCESS;
}

CUresult releasePrimary(Driver& driver, CUdevice device, bool all) {
  std::lock_guard lock(driver.primaryMutex);
  auto* primary = primaryOf(driver, device);
  if (primary == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!*primary) return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (!all && --(*primary)->references > 0) return CUDA_SUCCESS;
  driver.destroyContext(*primary);
  primary->reset();
  return CUDA_SUCCESS;
}

CUresult createContext(Driver& driver, CUcontext* out, unsigned flags, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  auto context = driver.makeContext(device, flags, error);
  if (!context) return error;
  *out = handleOf(context);
  currentStack().push_back(*out);
  return CUDA_SUCCESS;
}

CUresult waitForContext(Driver& driver, const std::shared_ptr<Context>& context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  driver.streams.awaitAllOf(*context);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return gatedCall("cuDevicePrimaryCtxRetain",
                   [&](Driver& driver) { return retainPrimary(driver, out, device); });
}

SIMGPU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return gatedCall("cuDevicePrimaryCtxRelease",
                   [&](Driver& driver) { return releasePrimary(driver, device, false); });
}
SIMGPU_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

SIMGPU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return gatedCall("cuDevicePrimaryCtxReset",
                   [&](Driver& driver) { return releasePrimary(driver, device, true); });
}
SIMGPU_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

SIMGPU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned) {
  return plainCall([&](Driver& driver) {
    return driver.card(device) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

SIMGPU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return plainCall([&](Driver& driver) {
    std::lock_guard lock(driver.primaryMutex);
    auto* primary = primaryOf(driver, device);
    if (primary == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = *primary ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return gatedCall("cuCtxCreate",
                   [&](Driver& driver) { return createContext(driver, out, flags, device); });
}
SIMGPU_ALIAS(cuCtxCreate, cuCtxCreate_v2);

SIMGPU_API CUresult cuCtxCreate_v3(CUcontext* out, void*, int, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(out, flags, device);
}

SIMGPU_API CUresult cuCtxCreate_v4(CUcontext* out, void*, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(out, flags, device);
}

SIMGPU_API CUresult cuCtxDestroy_v2(CUcontext handle) {
  return gatedCall("cuCtxDestroy", [&](Driver& driver) {
    auto context = driver.contexts.find(handle);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    driver.destroyContext(context);
    auto& stack = currentStack();
    if (!stack.empty() && stack.back() == handle) stack.pop_back();
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

SIMGPU_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return plainCall([&](Driver& driver) {
    if (!driver.contexts.find(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    currentStack().push_back(handle);
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

SIMGPU_API CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  return plainCall([&](Driver&) {
    auto& stack = currentStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

SIMGPU_API CUresult cuCtxSetCurrent(CUcontext handle) {
  return plainCall([&](Driver& driver) {
    if (handle != nullptr && !driver.contexts.find(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = currentStack();
    if (!stack.empty()) stack.pop_back();
    if (handle != nullptr) stack.push_back(handle);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxGetCurrent(CUcontext* out) {
  return plainCall([&](Driver&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = currentStack().empty() ? nullptr : currentStack().back();
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxGetDevice(CUdevice* out) {
  return plainCall([&](Driver& driver) {
    auto context = driver.current();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context->device;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  return plainCall([&](Driver& driver) {
    auto context = handle == nullptr ? driver.current() : driver.contexts.find(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context->device;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxGetFlags(unsigned* out) {
  return plainCall([&](Driver& driver) {
    auto context = driver.current();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context->flags;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* out) {
  return plainCall([&](Driver& driver) {
    auto context = handle == nullptr ? driver.current() : driver.contexts.find(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = kContextApiVersion;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuCtxSynchronize() {
  return gatedCall("cuCtxSynchronize",
                   [](Driver& driver) { return waitForContext(driver, driver.current()); });
}

SIMGPU_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
  return gatedCall("cuCtxSynchronize", [&](Driver& driver) {
    return waitForContext(driver,
                          handle == nullptr ? driver.current() : driver.contexts.find(handle));
  });
}

SIMGPU_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxSetLimit(int, std::size_t) {
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxGetLimit(std::size_t* out, int) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 1024;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

}  // namespace simgpu
