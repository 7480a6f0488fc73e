// A line a second of a kind that anybody can bring about, with the number of those untold before.
#pragma once

#include <chrono>
#include <cstdint>

#include "log/log.h"

namespace ts {

// One for each kind; for one thread.
class Throttle {
public:
  using Time = std::chrono::steady_clock::time_point;
  // Whether `line` may be told now; it then says how many were not.
  bool admits(Line& line, Time now = std::chrono::steady_clock::now());

private:
  Time quietUntil_{};
  std::uint64_t untold_ = 0;
};

}  // namespace ts
