#include <cstdint>
#include <cstring>

#include "simgpu/kernels/tables.h"

namespace simgpu {
namespace {

// simgpu_fill(uint32_t* to, uint32_t value, uint64_t count)
void fill(const Launch& launch) {
  auto* to = param<std::uint32_t*>(launch, 0);
  auto value = param<std::uint32_t>(launch, 1);
  auto count = param<std::uint64_t>(launch, 2);
  for (std::uint64_t i = 0; i < count; ++i) to[i] = value;
}

// simgpu_copy(uint32_t* to, const uint32_t* from, uint64_t count)
void copy(const Launch& launch) {
  auto* to = param<std::uint32_t*>(launch, 0);
  const auto* from = param<const std::uint32_t*>(launch, 1);
  std::memmove(to, from, param<std::uint64_t>(launch, 2) * sizeof *to);
}

// simgpu_axpy(float* y, const float* x, float a, uint64_t count): y += a * x
void axpy(const Launch& launch) {
  auto* y = param<float*>(launch, 0);
  const auto* x = param<const float*>(launch, 1);
  auto a = param<float>(launch, 2);
  auto count = param<std::uint64_t>(launch, 3);
  for (std::uint64_t i = 0; i < count; ++i) y[i] += a * x[i];
}

// simgpu_sum(uint64_t* out, const uint32_t* from, uint64_t count)
void sum(const Launch& launch) {
  const auto* from = param<const std::uint32_t*>(launch, 1);
  auto count = param<std::uint64_t>(launch, 2);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < count; ++i) total += from[i];
  *param<std::uint64_t*>(launch, 0) = total;
}

// simgpu_spin(uint64_t microseconds): occupies the card and touches nothing.
void spin(const Launch&) {}
std::uint64_t spinNs(const Launch& launch) {
  return param<std::uint64_t>(launch, 0) * 1000;
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr NamedKernel kKernels[] = {
    {"simgpu_fill", fill, nullptr, paramBytes<void*, U32, U64>()},
    {"simgpu_copy", copy, nullptr, paramBytes<void*, void*, U64>()},
    {"simgpu_axpy", axpy, nullptr, paramBytes<void*, void*, float, U64>()},
    {"simgpu_sum", sum, nullptr, paramBytes<void*, void*, U64>()},
    {"simgpu_spin", spin, spinNs, paramBytes<U64>()},
};

}  // namespace

std::span<const NamedKernel> basicKernels() {
  return kKernels;
}

}  // namespace simgpu
