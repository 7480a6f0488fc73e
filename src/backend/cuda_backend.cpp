#include "backend/cuda_backend.h"

#include <algorithm>
#include <limits>

namespace ts {

using cuda::Driver;
using cuda::Result;
using std::chrono::milliseconds;
using enum BackendOutcome::Code;

namespace {

milliseconds until(Deadline deadline) {
  return std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
}

Result lock(const Driver& driver, pid_t pid, Deadline deadline) {
  constexpr std::int64_t kLongest = std::numeric_limits<int>::max();
  std::int64_t left = std::min<std::int64_t>(until(deadline).count(), kLongest);
  if (left < 1) return Result::NotReady;  // not asked: 0 would mean no time-out
  cuda::LockArgs args{.timeoutMs = static_cast<unsigned int>(left)};
  return driver.lock(pid, &args);
}

Result checkpoint(const Driver& driver, pid_t pid) {
  cuda::CheckpointArgs args;
  return driver.checkpoint(pid, &args);
}

Result restore(const Driver& driver, pid_t pid) {
  cuda::RestoreArgs args;
  return driver.restore(pid, &args);
}

Result unlock(const Driver& driver, pid_t pid) {
  cuda::UnlockArgs args;
  return driver.unlock(pid, &args);
}

}  // namespace

CudaBackend::CudaBackend(std::shared_ptr<const Driver> driver, Measure measure,
                         cuda::Patience patience)
    : driver_(std::move(driver)), measure_(std::move(measure)), steps_(driver_, patience) {}

Probe CudaBackend::probe() {
  Probe out{.usable = driver_->usable(), .driverVersion = driver_->version};
  out.detail = out.usable ? driver_->versionText() : driver_->error;
  if (!out.usable) return out;
  out.features.push_back("checkpoint");
  if (driver_->getRestoreThreadId != nullptr) out.features.push_back("restore-thread-id");
  return out;
}

TargetState CudaBackend::state(const Target& target) {
  return steps_.state(target.pid);
}

BackendOutcome CudaBackend::quiesce(const Target& target, Deadline deadline) {
  pid_t pid = target.pid;
  cuda::Step step{.entry = "cuCheckpointProcessLock",
                  .from = TargetState::Running,
                  .to = TargetState::Locked,
                  .call = [&] { return lock(*driver_, pid, deadline); },
                  .undo = [&] { return unlock(*driver_, pid); }};
  milliseconds half = std::max(until(deadline) / 2, milliseconds(0));
  BackendOutcome out = steps_.run(pid, step, std::min(half, steps_.patience().beforeCall));
  if (out.code == TimedOut) out.detail = "did not come to rest in time: " + out.detail;
  return out;
}

BackendOutcome CudaBackend::save(const Target& target, const DeviceSet&) {
  pid_t pid = target.pid;
  std::uint64_t bytes = measured(pid);
  BackendOutcome out = steps_.run(pid, {.entry = "cuCheckpointProcessCheckpoint",
                                        .from = TargetState::Locked,
                                        .to = TargetState::Saved,
                                        .call = [&] { return checkpoint(*driver_, pid); },
                                        .undo = [&] { return ts::restore(*driver_, pid); }});
  if (out.ok()) out.bytes = bytes;
  return out;
}

BackendOutcome CudaBackend::restore(const Target& target, const DeviceSet&) {
  pid_t pid = target.pid;
  cuda::Step step{.entry = "cuCheckpointProcessRestore",
                  .from = TargetState::Saved,
                  .to = TargetState::Locked,
                  .call = [&] { return ts::restore(*driver_, pid); },
                  .undo = [&] { return checkpoint(*driver_, pid); },
                  .back = true};
  BackendOutcome out = steps_.run(pid, step);
  if (out.code == NoSpace) {
    // Running out of memory has been seen to break a target for good: every later restore fails
    // with another error. Asked once more, the driver tells which it is.
    std::string first = out.detail;
    out = steps_.run(pid, step);
    if (out.lasting) out.detail = first + "; then " + out.detail;
  }
  if (out.ok()) out.bytes = measured(pid);
  return out;
}

BackendOutcome CudaBackend::release(const Target& target) {
  pid_t pid = target.pid;
  return steps_.run(pid, {.entry = "cuCheckpointProcessUnlock",
                          .from = TargetState::Locked,
                          .to = TargetState::Running,
                          .call = [&] { return unlock(*driver_, pid); },
                          .back = true});
}

// The copy lives in the process and went with it.
BackendOutcome CudaBackend::discard(const Target&) {
  return {.after = TargetState::Gone};
}

std::uint64_t CudaBackend::measured(pid_t pid) const {
  return measure_ ? measure_(pid).value_or(0) : 0;
}

}  // namespace ts
