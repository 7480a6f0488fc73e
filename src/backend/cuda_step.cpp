#include "backend/cuda_step.h"

#include "backend/process.h"

namespace ts::cuda {

using std::chrono::milliseconds;
using enum BackendOutcome::Code;

namespace {

std::string processText(pid_t pid) {
  return "process " + std::to_string(pid);
}

// The driver refuses the very call that the state it reports asks for, or says that the process's
// side of it is broken. On the way back that has been seen to last until the process is killed.
bool lostOnTheWay(const Step& step, const StateRead& after, Result result) {
  bool broken = result == Result::IllegalState || result == Result::OperatingSystem;
  return step.back && broken && after.state == step.from;
}

BackendOutcome::Code codeOf(const Step& step, const StateRead& after, Result result) {
  bool locking = step.from == TargetState::Running;
  switch (result) {
    case Result::NotSupported:
      return Unsupported;
    // Elsewhere it says this too, of other things than memory (on a device in MIG mode).
    case Result::OutOfMemory:
      return step.from == TargetState::Saved ? NoSpace : DriverError;
    case Result::NotReady:
      return locking ? TimedOut : DriverError;
    case Result::NotInitialized:
      return locking ? NoContext : DriverError;
    case Result::IllegalState:
      return after.answered && after.state != step.from ? WrongState : DriverError;
    default:
      return DriverError;
  }
}

std::string adviceFor(Result result) {
  return result == Result::NotPermitted ? "; tsnoded must run as root, or with CAP_SYS_PTRACE" : "";
}

// What needs no call, or may have none. A driver that is silent about the state is no reason to
// hold back: it checks the state in the call itself, and changes nothing if it is the wrong one.
std::optional<BackendOutcome> settled(pid_t pid, const Step& step, const StateRead& before) {
  if (!before.answered || before.state == step.from) return std::nullopt;
  std::string is = processText(pid) + " is " + toText(before.state);
  TargetState after = before.state;
  if (after == step.to) return BackendOutcome{.detail = is + " already", .after = after};
  if (after == TargetState::NoContext)
    return BackendOutcome{.code = NoContext, .detail = is, .after = after};
  if (after == TargetState::Unknown) {
    return BackendOutcome{.code = DriverError,
                          .detail = processText(pid) + ": " + before.detail,
                          .after = after,
                          .lasting = before.lasting};
  }
  if (after == TargetState::Failed) {
    return BackendOutcome{.code = DriverError,
                          .detail = is + " in the driver's eyes; it can only be ended",
                          .after = after,
                          .lasting = true};
  }
  return BackendOutcome{
      .code = WrongState, .detail = is + ", not " + toText(step.from), .after = after};
}

std::optional<BackendOutcome> endedDuring(pid_t pid, const Step& step) {
  ProcessLook look = lookAt(pid);
  if (look.kind == ProcessKind::Leader) return std::nullopt;
  BackendOutcome outcome = refuse(look, pid);
  outcome.detail += std::string(" during ") + step.entry;
  return outcome;
}

}  // namespace

StepRunner::StepRunner(std::shared_ptr<const Driver> driver, Patience patience)
    : driver_(std::move(driver)), patience_(patience), states_(driver_) {}

TargetState StepRunner::state(pid_t pid) {
  if (!driver_->usable()) return TargetState::Unknown;
  ProcessKind kind = lookAt(pid).kind;
  if (kind == ProcessKind::Gone) return TargetState::Gone;
  if (kind != ProcessKind::Leader) return TargetState::Unknown;
  TargetState state = states_.read(pid, patience_.afterCall).state;
  return lookAt(pid).kind == ProcessKind::Gone ? TargetState::Gone : state;
}

BackendOutcome StepRunner::run(pid_t pid, const Step& step, milliseconds patience) {
  if (!driver_->usable()) return {.code = Unsupported, .detail = driver_->error};
  ProcessLook look = lookAt(pid);
  if (look.kind != ProcessKind::Leader) return refuse(look, pid);
  StateRead before = states_.read(pid, patience);
  if (auto outcome = settled(pid, step, before)) {
    look = lookAt(pid);  // what is said of one that died meanwhile is not about its state
    return look.kind == ProcessKind::Gone ? refuse(look, pid) : *outcome;
  }
  auto began = std::chrono::steady_clock::now();
  Result result = step.call();
  auto took = std::chrono::steady_clock::now() - began;
  BackendOutcome outcome = conclude(pid, step, result);
  outcome.took = std::chrono::duration_cast<std::chrono::microseconds>(took);
  return outcome;
}

BackendOutcome StepRunner::conclude(pid_t pid, const Step& step, Result result) {
  if (auto ended = endedDuring(pid, step)) return *ended;
  bool success = result == Result::Success;
  StateRead after = states_.read(pid, success ? patience_.afterCall : patience_.beforeCall);
  bool arrived = after.state == step.to;
  if (success && arrived) return {.after = after.state};
  if (auto ended = endedDuring(pid, step)) return *ended;  // while it was asked for its state
  BackendOutcome outcome = failure(pid, step, result, after);
  if (!arrived) return outcome;
  // The driver refuses because the process was there before this call: it was silent when asked, or
  // the call of another caller, a daemon that was killed in the middle of it, has ended meanwhile.
  bool wasThere = result == Result::IllegalState;
  if (wasThere || !step.undo) return {.detail = outcome.detail, .after = after.state};
  return undo(pid, step, std::move(outcome));
}

BackendOutcome StepRunner::undo(pid_t pid, const Step& step, BackendOutcome outcome) {
  Result result = step.undo();
  StateRead after = states_.read(pid, patience_.afterCall);
  outcome.after = after.state;
  outcome.lasting = after.state != step.from;
  outcome.detail += outcome.lasting ? "; undoing it failed too: " + driver_->nameOf(result) +
                                          ", and it is " + toText(after.state)
                                    : "; undone";
  return outcome;
}

BackendOutcome StepRunner::failure(pid_t pid, const Step& step, Result result,
                                   const StateRead& after) const {
  bool unknown = after.state == TargetState::Unknown;
  std::string now = unknown ? after.detail : std::string("it is ") + toText(after.state);
  BackendOutcome outcome{.after = after.state};
  outcome.detail = std::string(step.entry) + " on " + processText(pid) + ": " +
                   driver_->nameOf(result) + ", and " + now + adviceFor(result);
  outcome.lasting =
      after.lasting || after.state == TargetState::Failed || lostOnTheWay(step, after, result);
  bool plain = outcome.lasting || result == Result::Success;
  outcome.code = plain ? DriverError : codeOf(step, after, result);
  return outcome;
}

}  // namespace ts::cuda
