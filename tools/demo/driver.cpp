#include "driver.h"

#include <dlfcn.h>

#include "device.h"

namespace demo {
namespace {

template <class Function>
void find(void* library, const char* name, Function& into) {
  *reinterpret_cast<void**>(&into) = dlsym(library, name);
  if (!into) {
    throw DeviceError(std::string("libcuda.so.1 has no ") + name +
                      "; the driver is too old for us");
  }
}

void* openLibrary() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char* why = dlerror();
  throw DeviceError(std::string("no CUDA driver: ") + (why ? why : "libcuda.so.1 does not load") +
                    "; on a machine without a GPU put simgpu's folder into LD_LIBRARY_PATH");
}

}  // namespace

Driver openDriver() {
  void* library = openLibrary();
  Driver d = {};
  find(library, "cuInit", d.cuInit);
  find(library, "cuDriverGetVersion", d.cuDriverGetVersion);
  find(library, "cuGetErrorName", d.cuGetErrorName);
  find(library, "cuDeviceGet", d.cuDeviceGet);
  find(library, "cuDeviceGetName", d.cuDeviceGetName);
  find(library, "cuDeviceTotalMem_v2", d.cuDeviceTotalMem);
  find(library, "cuDevicePrimaryCtxRetain", d.cuDevicePrimaryCtxRetain);
  find(library, "cuDevicePrimaryCtxRelease_v2", d.cuDevicePrimaryCtxRelease);
  find(library, "cuCtxSetCurrent", d.cuCtxSetCurrent);
  find(library, "cuMemGetInfo_v2", d.cuMemGetInfo);
  find(library, "cuMemAlloc_v2", d.cuMemAlloc);
  find(library, "cuMemFree_v2", d.cuMemFree);
  find(library, "cuMemsetD8_v2", d.cuMemsetD8);
  find(library, "cuMemcpyHtoD_v2", d.cuMemcpyHtoD);
  find(library, "cuMemcpyDtoH_v2", d.cuMemcpyDtoH);
  find(library, "cuModuleLoadData", d.cuModuleLoadData);
  find(library, "cuModuleUnload", d.cuModuleUnload);
  find(library, "cuModuleGetFunction", d.cuModuleGetFunction);
  find(library, "cuLaunchKernel", d.cuLaunchKernel);
  find(library, "cuEventCreate", d.cuEventCreate);
  find(library, "cuEventDestroy_v2", d.cuEventDestroy);
  find(library, "cuEventRecord", d.cuEventRecord);
  find(library, "cuEventSynchronize", d.cuEventSynchronize);
  find(library, "cuEventElapsedTime", d.cuEventElapsedTime);
  return d;
}

std::string errorName(const Driver& driver, CUresult error) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(error, &name) != kCudaSuccess || !name) name = "unknown error";
  return std::string(name) + " (" + std::to_string(static_cast<int>(error)) + ")";
}

}  // namespace demo
