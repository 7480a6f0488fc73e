// The tables of built-in kernels, one per file here. A new file adds its table and one line in
// registry.cpp.
#pragma once

#include <span>

#include "simgpu/kernels/registry.h"

namespace simgpu {

std::span<const NamedKernel> basicKernels();
std::span<const NamedKernel> demoKernels();

}  // namespace simgpu
