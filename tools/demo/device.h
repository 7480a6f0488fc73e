// What the trainer needs of a GPU: memory, copies and kernels by name.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "simgpu/kernels/demo_kernels.h"

namespace demo {

struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct NoRoom : DeviceError {  // the card is too full
  using DeviceError::DeviceError;
};

// An address on the device; nothing here may be read or written by the CPU.
template <class T>
struct Array {
  T* data = nullptr;
  std::size_t count = 0;
  std::uint64_t bytes() const { return count * sizeof(T); }
};

// Throws DeviceError with the driver's word for it. One thread at a time.
class Device {
public:
  struct Block {
    std::uint64_t* words = nullptr;
    std::uint64_t count = 0;
  };

  virtual ~Device() = default;

  // Zeroed, and rounded up to whole words so that a digest can read all of it.
  template <class T>
  Array<T> make(std::size_t count) {
    const std::uint64_t words = std::max<std::uint64_t>(1, (count * sizeof(T) + 7) / 8);
    void* data = allocate(words * 8);
    blocks_.push_back({static_cast<std::uint64_t*>(data), words});
    return {static_cast<T*>(data), count};
  }
  template <class T>
  void write(Array<T> to, std::span<const T> from) {
    copyIn(to.data, from.data(), from.size_bytes());
  }
  template <class T>
  std::vector<T> read(Array<T> from) {
    std::vector<T> values(from.count);
    copyOut(values.data(), from.data, from.bytes());
    return values;
  }
  template <class Args>
  void run(const char* kernel, const Args& args) {
    launch(kernel, &args, args.extent.threads);
  }

  // Everything made so far, in order.
  std::span<const Block> blocks() const { return blocks_; }
  std::uint64_t bytes() const;

  // Returns when all that was launched has ended. Between a launch and this, nothing is copied.
  virtual void finish() = 0;
  // How long kernels have run, as of the last finish().
  virtual std::chrono::nanoseconds busy() const = 0;

protected:
  virtual void* allocate(std::uint64_t bytes) = 0;
  virtual void copyIn(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copyOut(void* to, const void* from, std::size_t bytes) = 0;
  virtual void launch(const char* kernel, const void* args, std::uint32_t threads) = 0;

private:
  std::vector<Block> blocks_;
};

inline std::uint64_t Device::bytes() const {
  std::uint64_t sum = 0;
  for (const Block& block : blocks_) sum += block.count * 8;
  return sum;
}

}  // namespace demo
