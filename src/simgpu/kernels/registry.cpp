#include "simgpu/kernels/registry.h"

#include "simgpu/kernels/tables.h"

namespace simgpu {

const NamedKernel* findKernel(std::string_view name) {
  for (auto table : {basicKernels(), demoKernels()})
    for (const NamedKernel& kernel : table)
      if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace simgpu
