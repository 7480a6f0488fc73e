#include <dlfcn.h>

#include <string>

#include "simgpu/api.h"

namespace simgpu {
namespace {

constexpr unsigned long long kPerThreadDefaultStream = 2;  // a flag of cuGetProcAddress

// This library by its own handle: what another library put in front of us is not meant.
void* ownHandle() {
  static void* handle = [] {
    Dl_info info = {};
    bool known = ::dladdr(reinterpret_cast<void*>(&ownHandle), &info) != 0;
    return known ? ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  }();
  return handle;
}

void* exported(const std::string& name) {
  return ownHandle() == nullptr ? nullptr : ::dlsym(ownHandle(), name.c_str());
}

// The newest variant that a program of this CUDA version knows. These few changed their arguments
// since version 2; of all others the newest is right.
std::string variantFor(const std::string& base, int version) {
  if (base == "cuCtxCreate") return version >= 12050 ? "_v4" : version >= 11040 ? "_v3" : "_v2";
  if (base == "cuGetProcAddress") return version >= 12000 ? "_v2" : "";
  if (base == "cuCtxGetDevice" || base == "cuCtxSynchronize") return version >= 13000 ? "_v2" : "";
  return exported(base + "_v2") != nullptr ? "_v2" : "";
}

void* find(const char* symbol, int version, unsigned long long flags) {
  std::string name = symbol + variantFor(symbol, version);
  if (flags & kPerThreadDefaultStream)
    for (const char* suffix : {"_ptsz", "_ptds"})
      if (void* own = exported(name + suffix)) return own;
  return exported(name);
}

}  // namespace

SIMGPU_API CUresult cuGetProcAddress_v2(const char* symbol, void** out, int version,
                                        unsigned long long flags,
                                        CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return guarded([&] {
    *out = find(symbol, version, flags);
    if (status != nullptr)
      *status =
          *out != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

SIMGPU_API CUresult cuGetProcAddress(const char* symbol, void** out, int version,
                                     unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
}

}  // namespace simgpu
