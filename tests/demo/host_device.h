// A Device in this process: simgpu's kernels on ordinary memory, which a test may look into and
// spoil.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "simgpu/kernels/tables.h"

namespace demo {

class HostDevice final : public Device {
public:
  void finish() override {}
  std::chrono::nanoseconds busy() const override { return {}; }
  std::uint64_t launches() const { return launches_; }

  // As if a snapshot had come back with one bit of this byte wrong. The lowest bit, so that a digit
  // stays a digit.
  void spoil(std::size_t block, std::uint64_t byte) {
    reinterpret_cast<unsigned char*>(blocks()[block].words)[byte] ^= 1;
  }

private:
  void* allocate(std::uint64_t bytes) override {
    memory_.push_back(std::make_unique<std::uint64_t[]>(bytes / 8));
    return memory_.back().get();
  }
  void copyIn(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void copyOut(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void launch(const char* kernel, const void* args, std::uint32_t threads) override {
    ++launches_;
    for (const simgpu::NamedKernel& known : simgpu::demoKernels()) {
      if (known.name != kernel) continue;
      void* params[] = {const_cast<void*>(args)};
      known.run(simgpu::Launch{{(threads + 63) / 64, 1, 1}, {64, 1, 1}, 0, params});
      return;
    }
    throw DeviceError(std::string("no kernel ") + kernel);
  }

  std::vector<std::unique_ptr<std::uint64_t[]>> memory_;
  std::uint64_t launches_ = 0;
};

}  // namespace demo
