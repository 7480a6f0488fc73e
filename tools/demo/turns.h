// The job's place in the queue: acquire before a phase on the GPU, yield after it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "timeslice/timeslice.hpp"

namespace demo {

struct TurnCounts {
  std::uint64_t slices = 0;
  std::uint64_t switches = 0;  // grants for which state was moved, anywhere in the job's claim
  std::uint64_t movedBytes = 0;
  std::chrono::microseconds waited{0};
};

// Throws ts::Error. Without TIMESLICE_* in the environment nothing is asked of anybody, and the job
// runs as it always did.
class Turns {
public:
  // `gang`: how many ranks make one slice.
  explicit Turns(unsigned gang) : client_(ts::JoinOptions{.gang = gang}) {}

  // Blocks until the turn has come; nothing happens if it is ours already.
  void acquire(const std::string& phase);
  void yield();
  const TurnCounts& counts() const { return counts_; }

private:
  ts::Client client_;
  std::optional<ts::Slice> slice_;
  TurnCounts counts_;
};

}  // namespace demo
