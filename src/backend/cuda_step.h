// One changing call of the driver, with the state read before and after it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "backend/cuda_driver.h"
#include "backend/cuda_state.h"
#include "backend/snapshot_backend.h"

namespace ts::cuda {

// How long to wait for the driver to tell a state.
struct Patience {
  std::chrono::milliseconds beforeCall{1000};  // then the call itself tells whether it was due
  std::chrono::milliseconds afterCall{10000};
};

struct Step {
  const char* entry;  // the driver's name for it
  TargetState from;
  TargetState to;
  std::function<Result()> call;
  std::function<Result()> undo;  // none: an effect in spite of an error is welcome
  bool back = false;             // towards running: failing at it for good loses the target
};

// A success without effect is a failure, and an effect in spite of an error is undone to exactly
// the state it started from.
class StepRunner {
public:
  StepRunner(std::shared_ptr<const Driver> driver, Patience patience);

  BackendOutcome run(pid_t pid, const Step& step, std::chrono::milliseconds patience);
  BackendOutcome run(pid_t pid, const Step& step) { return run(pid, step, patience_.beforeCall); }
  TargetState state(pid_t pid);
  const Patience& patience() const { return patience_; }

private:
  BackendOutcome conclude(pid_t pid, const Step& step, Result result);
  BackendOutcome undo(pid_t pid, const Step& step, BackendOutcome outcome);
  BackendOutcome failure(pid_t pid, const Step& step, Result result, const StateRead& after) const;

  std::shared_ptr<const Driver> driver_;
  Patience patience_;
  StateReader states_;
};

}  // namespace ts::cuda
