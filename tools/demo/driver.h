// The CUDA driver API by dlopen, with our own declarations: only what the demo calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace demo {

using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = void*;
using CUmodule = void*;
using CUfunction = void*;
using CUstream = void*;
using CUevent = void*;

enum CUresult : int { kCudaSuccess = 0, kCudaOutOfMemory = 2 };

struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuDriverGetVersion)(int* version);
  CUresult (*cuGetErrorName)(CUresult error, const char** name);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetName)(char* name, int size, CUdevice device);
  CUresult (*cuDeviceTotalMem)(std::size_t* bytes, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRelease)(CUdevice device);
  CUresult (*cuCtxSetCurrent)(CUcontext context);
  CUresult (*cuMemGetInfo)(std::size_t* free, std::size_t* total);
  CUresult (*cuMemAlloc)(CUdeviceptr* address, std::size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr address);
  CUresult (*cuMemsetD8)(CUdeviceptr to, unsigned char value, std::size_t bytes);
  CUresult (*cuMemcpyHtoD)(CUdeviceptr to, const void* from, std::size_t bytes);
  CUresult (*cuMemcpyDtoH)(void* to, CUdeviceptr from, std::size_t bytes);
  CUresult (*cuModuleLoadData)(CUmodule* module, const void* image);
  CUresult (*cuModuleUnload)(CUmodule module);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                             unsigned blockX, unsigned blockY, unsigned blockZ,
                             unsigned sharedBytes, CUstream stream, void** params, void** extra);
  CUresult (*cuEventCreate)(CUevent* event, unsigned flags);
  CUresult (*cuEventDestroy)(CUevent event);
  CUresult (*cuEventRecord)(CUevent event, CUstream stream);
  CUresult (*cuEventSynchronize)(CUevent event);
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent start, CUevent end);
};

// Throws DeviceError that says what is missing. The library stays loaded until the process ends.
Driver openDriver();
// "CUDA_ERROR_OUT_OF_MEMORY (2)"
std::string errorName(const Driver& driver, CUresult error);

}  // namespace demo
