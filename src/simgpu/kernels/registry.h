// The built-in kernels: looked up by name when a module function is asked for, run on the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace simgpu {

struct Launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void** params;  // as given to cuLaunchKernel: a pointer to each argument
};

template <class T>
const T& param(const Launch& launch, unsigned index) {
  return *static_cast<const T*>(launch.params[index]);
}

constexpr unsigned kMaxParams = 24;
using ParamBytes = std::array<std::uint16_t, kMaxParams>;

// The sizes of a kernel's arguments, in order: paramBytes<std::uint64_t, float>().
template <class... T>
constexpr ParamBytes paramBytes() {
  static_assert(sizeof...(T) <= kMaxParams);
  return {static_cast<std::uint16_t>(sizeof(T))...};
}

using Kernel = void (*)(const Launch&);

struct NamedKernel {
  std::string_view name;
  Kernel run;
  // Modelled duration: nanoseconds the launch occupies the card at least. Null: only what it takes.
  std::uint64_t (*modelledNs)(const Launch&) = nullptr;
  // With them a launch copies its arguments and returns at once, as on a card. Without them (all
  // zero) nobody knows what to copy, so the launch returns when the kernel has run.
  ParamBytes paramBytes{};
};

// Looks through the tables of kernels/tables.h.
const NamedKernel* findKernel(std::string_view name);

}  // namespace simgpu
