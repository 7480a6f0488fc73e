// A number that depends on every byte of a job's device memory, each time it is looked at.
#pragma once

#include <cstdint>

#include "device.h"

namespace demo {

// Chained: once a byte was wrong at one look, every later value is another one.
class Digest {
public:
  explicit Digest(Device& device) : device_(device), sum_(device.make<std::uint64_t>(1)) {}

  void absorb(std::uint64_t value) { value_ = mix(value_, value); }
  // Reads all memory made on the device so far; keeps it busy at least so long.
  void absorbMemory(std::uint64_t atLeastNs);
  std::uint64_t value() const { return value_; }

private:
  Device& device_;
  Array<std::uint64_t> sum_;
  std::uint64_t value_ = 0;
};

}  // namespace demo
