// Reads the state of a process from the driver, and never waits for the answer without a bound.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda_driver.h"
#include "backend/snapshot_backend.h"

namespace ts::cuda {

struct StateRead {
  TargetState state = TargetState::Unknown;
  std::string detail;     // why it is unknown
  bool answered = false;  // false: the driver is still silent, which proves nothing
  bool lasting = false;   // the driver named a state that we do not know
};

// While one process of a communicating set is locked, a query on a peer can block for as long as
// the peer is not. So each query has its own thread, which is left behind with what it needs if it
// hangs.
class StateReader {
public:
  explicit StateReader(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  StateRead read(pid_t pid, std::chrono::milliseconds patience);

private:
  struct Query;
  std::shared_ptr<Query> underWay(pid_t pid);
  std::shared_ptr<Query> start(pid_t pid);

  std::shared_ptr<const Driver> driver_;
  std::mutex mutex_;
  std::map<pid_t, std::shared_ptr<Query>> queries_;  // the last one of each process, while it runs
};

}  // namespace ts::cuda
