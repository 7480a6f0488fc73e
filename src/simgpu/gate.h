// The gate that every CUDA call of a process passes: closed while the process is locked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace simgpu {

using Clock = std::chrono::steady_clock;
using Until = std::optional<Clock::time_point>;  // nothing: for ever

class Gate {
public:
  // Waits while the gate is closed. A call that a call makes passes without asking.
  void enter();
  void leave();

  void close();
  void open();
  bool drained(Until until);  // nobody is inside any more; asked after close()

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int inside_ = 0;
};

}  // namespace simgpu
