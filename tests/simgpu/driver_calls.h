// The driver as a program finds it: libcuda.so.1 and libnvidia-ml.so.1 by dlopen, entry points by
// name.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "simgpu/cuda_abi.h"
#include "simgpu/nvml_abi.h"

namespace simgpu_test {

class Library {
public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW)) {
    if (handle_ != nullptr) return;
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(1);
  }
  template <class... Args>
  auto call(const char* name, Args... args) const {
    using Entry = int (*)(Args...);
    Entry entry = nullptr;
    *reinterpret_cast<void**>(&entry) = ::dlsym(handle_, name);
    if (entry != nullptr) return entry(args...);
    std::fprintf(stderr, "no %s\n", name);
    std::exit(1);
  }

private:
  void* handle_;
};

}  // namespace simgpu_test
