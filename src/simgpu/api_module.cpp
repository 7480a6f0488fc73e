#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "simgpu/api.h"
#include "simgpu/process_id.h"

namespace simgpu {
namespace {

// The arguments of a launch, copied: the caller may reuse its own as soon as the launch returns.
class Arguments {
public:
  Arguments(const NamedKernel& kernel, void** params) {
    unsigned count = 0;
    while (count < kMaxParams && kernel.paramBytes[count] != 0) ++count;
    for (unsigned i = 0; i < count; ++i) copy(params[i], kernel.paramBytes[i]);
    for (std::size_t offset : offsets_) pointers_.push_back(bytes_.data() + offset);
  }
  void** pointers() { return pointers_.data(); }

private:
  void copy(const void* from, std::size_t bytes) {
    std::size_t offset = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(offset + bytes);
    std::memcpy(bytes_.data() + offset, from, bytes);
    offsets_.push_back(offset);
  }

  std::vector<std::byte> bytes_;
  std::vector<std::size_t> offsets_;
  std::vector<void*> pointers_;
};

bool sane(const Launch& l) {
  for (unsigned i = 0; i < 3; ++i)
    if (l.grid[i] == 0 || l.block[i] == 0) return false;
  return static_cast<std::uint64_t>(l.block[0]) * l.block[1] * l.block[2] <= 1024;
}

void runKernel(Stream& stream, const NamedKernel& kernel, const Launch& launch,
               std::uint64_t launchedNs) {
  std::uint64_t modelled = kernel.modelledNs == nullptr ? 0 : kernel.modelledNs(launch);
  std::uint64_t ready = std::max(launchedNs, stream.timeNs.load());
  stream.timeNs = stream.context->card->compute(ready, modelled, [&] { kernel.run(launch); });
}

CUresult launch(CUfunction handle, Launch what, CUstream streamHandle) {
  return streamCall("cuLaunchKernel", streamHandle, [&](Driver& driver, auto stream) {
    auto function = driver.functions.find(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    const NamedKernel& kernel = *function->kernel;
    bool copied = kernel.paramBytes[0] != 0;
    if (!sane(what) || (copied && what.params == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t now = nowNs();
    if (!copied) {
      driver.streams.runHere(stream, [&] { runKernel(*stream, kernel, what, now); });
      return CUDA_SUCCESS;
    }
    auto arguments = std::make_shared<Arguments>(kernel, what.params);
    what.params = arguments->pointers();
    driver.streams.submit(
        stream, [stream, &kernel, what, arguments, now] { runKernel(*stream, kernel, what, now); });
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult loadModule(const char* name, Handle* out, const void* image) {
  return deviceCall(name, [&](Driver& driver, Context& context) {
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto module = std::make_shared<Module>();
    module->context = &context;
    *out = reinterpret_cast<Handle>(driver.modules.add(module));
    return CUDA_SUCCESS;
  });
}

CUresult functionNamed(CUfunction* out, CUmodule handle, const char* name) {
  return deviceCall("cuModuleGetFunction", [&](Driver& driver, Context&) {
    auto module = driver.modules.find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const NamedKernel* kernel = findKernel(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    auto function = std::make_shared<Function>();
    function->kernel = kernel;
    function->module = module.get();
    *out = driver.functions.add(function);
    return CUDA_SUCCESS;
  });
}

CUresult unload(CUmodule handle) {
  return gatedCall("cuModuleUnload", [&](Driver& driver) {
    auto module = driver.modules.remove(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    driver.functions.removeIf([&](Function& f) { return f.module == module.get(); });
    return CUDA_SUCCESS;
  });
}

}  // namespace

SIMGPU_API CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return loadModule("cuModuleLoadData", out, image);
}

SIMGPU_API CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned, int*, void**) {
  return loadModule("cuModuleLoadDataEx", out, image);
}

SIMGPU_API CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return loadModule("cuModuleLoadFatBinary", out, image);
}

SIMGPU_API CUresult cuModuleLoad(CUmodule* out, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (::access(path, R_OK) != 0) return CUDA_ERROR_FILE_NOT_FOUND;
  return loadModule("cuModuleLoad", out, path);
}

SIMGPU_API CUresult cuModuleUnload(CUmodule handle) {
  return unload(handle);
}

SIMGPU_API CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return functionNamed(out, module, name);
}

SIMGPU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t*, CUmodule, const char*) {
  return CUDA_ERROR_NOT_FOUND;  // the built-in kernels have no globals
}

SIMGPU_API CUresult cuModuleGetLoadingMode(int* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 1;  // eager
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuLibraryLoadData(CUlibrary* out, const void* code, int*, void**, unsigned,
                                      int*, void**, unsigned) {
  return loadModule("cuLibraryLoadData", out, code);
}

SIMGPU_API CUresult cuLibraryUnload(CUlibrary library) {
  return unload(reinterpret_cast<CUmodule>(library));
}

SIMGPU_API CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
  CUfunction function = nullptr;
  CUresult result = functionNamed(&function, reinterpret_cast<CUmodule>(library), name);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUkernel>(function);
  return result;
}

SIMGPU_API CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncGetAttribute(int* out, int which, CUfunction handle) {
  return plainCall([&](Driver& driver) {
    constexpr int kMaxThreads = 0, kRegisters = 4, kPtxVersion = 5, kBinaryVersion = 6;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.functions.find(handle)) return CUDA_ERROR_INVALID_HANDLE;
    *out = which == kMaxThreads                              ? 1024
           : which == kRegisters                             ? 32
           : which == kPtxVersion || which == kBinaryVersion ? 90
                                                             : 0;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuFuncSetAttribute(CUfunction handle, int, int) {
  return plainCall([&](Driver& driver) {
    return driver.functions.find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

SIMGPU_API CUresult cuFuncSetCacheConfig(CUfunction handle, int) {
  return cuFuncSetAttribute(handle, 0, 0);
}

SIMGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction, int blockSize,
                                                                std::size_t) {
  if (out == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  *out = 2048 / blockSize;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                                   unsigned gridZ, unsigned blockX, unsigned blockY,
                                   unsigned blockZ, unsigned sharedBytes, CUstream stream,
                                   void** params, void** extra) {
  if (extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // arguments packed in one buffer
  return launch(function, {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, params},
                stream);
}
SIMGPU_ALIAS(cuLaunchKernel_ptsz, cuLaunchKernel);

SIMGPU_API CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** params,
                                     void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                        c->blockDimZ, c->sharedMemBytes, c->hStream, params, extra);
}
SIMGPU_ALIAS(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);

SIMGPU_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gridX, unsigned gridY,
                                              unsigned gridZ, unsigned blockX, unsigned blockY,
                                              unsigned blockZ, unsigned sharedBytes,
                                              CUstream stream, void** params) {
  return cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream,
                        params, nullptr);
}
SIMGPU_ALIAS(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel);

}  // namespace simgpu
