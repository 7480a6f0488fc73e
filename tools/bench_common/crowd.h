// Thousands of jobs, each a process of its own, told over shared memory what to do: no descriptor
// each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench_common/player.h"
#include "bench_common/process.h"

namespace ts::bench {

class Crowd {
public:
  using Make = std::function<std::unique_ptr<Turns>(int)>;
  Crowd(int most, Make make);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void growTo(int count);  // returns when all have joined
  int size() const { return static_cast<int>(processes_.size()); }
  double turn(int who);  // one acquire and yield; microseconds, as that process saw it
  void begin(int who);   // one turn, and what comes of it is asked for later
  double finish(int who);
  std::int64_t heldAt(int who) const { return slots_[who].held; }  // in its last turn

private:
  // One for each process: it waits for `order` to grow, and answers with `done`.
  struct Slot {
    std::atomic<std::uint32_t> order, done;
    std::int64_t held, took;
  };
  void live(int who, Slot& slot);

  const int most_;
  const Make make_;
  Slot* slots_;
  std::vector<Process> processes_;
};

}  // namespace ts::bench
