// The built-in kernels: looked up by name when a module function is asked for, run on the CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace simgpu {

struct Launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void** params;  // as given to cuLaunchKernel: a pointer to each argument
};

// What a kernel cost the card beyond the CPU time it took; added to the card's busy time.
using Kernel = void (*)(const Launch&);

struct NamedKernel {
  std::string_view name;
  Kernel run;
  // Modelled duration: nanoseconds the launch occupies the card at least. Null: only what it takes.
  std::uint64_t (*modelledNs)(const Launch&);
};

const NamedKernel* findKernel(std::string_view name);

}  // namespace simgpu
