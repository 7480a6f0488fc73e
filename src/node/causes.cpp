#include "node/causes.h"

namespace ts::node {
namespace {

struct Words {
  tsl_status status;
  const char* name;
};

Words wordsFor(Cause cause) {
  switch (cause) {
    case Cause::None:
      return {TSL_INTERNAL, "the master gave no cause"};
    case Cause::UnknownGroup:
      return {TSL_UNKNOWN_GROUP, "there is no such group"};
    case Cause::UnknownParticipant:
      return {TSL_NOT_JOINED, "the master does not know this process"};
    case Cause::DeviceOwned:
      return {TSL_DEVICE_OWNED, "a device of the claim is another group's"};
    case Cause::NoClaim:
      return {TSL_NO_CLAIM, "the job claims no device"};
    case Cause::NotEntered:
      return {TSL_NOT_ENTERED, "not in a slice"};
    case Cause::AlreadyWaiting:
      return {TSL_INVALID, "this process waits already"};
    case Cause::AlreadyEntered:
      return {TSL_INVALID, "this process is in a slice already"};
    case Cause::Busy:
      return {TSL_BUSY, "the turn is not free"};
    case Cause::Deadlock:
      return {TSL_DEADLOCK, "waiting would close a cycle between jobs"};
    case Cause::Cancelled:
      return {TSL_CANCELLED, "given up"};
    case Cause::Paused:
      return {TSL_PAUSED, "an operator paused the group"};
    case Cause::Evicted:
      return {TSL_EVICTED, "an operator ended this job's part in the group"};
    case Cause::NoHostMemory:
      return {TSL_NO_HOST_MEMORY, "no host memory for what must be saved"};
    case Cause::NoDeviceMemory:
      return {TSL_NO_DEVICE_MEMORY, "no device memory to restore into"};
    case Cause::NotReleased:
      return {TSL_NOT_RELEASED, "saved memory is still seen on the device"};
    case Cause::Stranger:
      return {TSL_NO_DEVICE_MEMORY, "a process of no job uses the device"};
    case Cause::NodeSuspect:
      return {TSL_UNAVAILABLE, "a node of the job does not answer, or not as it should"};
    case Cause::Drained:
      return {TSL_PAUSED, "an operator drained a node of the job"};
    case Cause::NoRecord:
      return {TSL_UNAVAILABLE, "the node has no room to write down what it does"};
    case Cause::NodeDead:
      return {TSL_UNAVAILABLE, "a node of the job is dead"};
    case Cause::JobFaulted:
      return {TSL_FAULTED, "the job's state cannot be moved"};
    case Cause::Blocked:
      return {TSL_FAULTED, "a job that cannot be moved is on the claim"};
    case Cause::Broken:
      return {TSL_FAULTED, "a participant of the gang is lost"};
    case Cause::Outside:
      return {TSL_FAULTED, "the job uses a device outside its claim"};
    case Cause::Unsupported:
      return {TSL_UNSUPPORTED, "the backend cannot do this here"};
    case Cause::DriverError:
      return {TSL_FAULTED, "the driver refused"};
    case Cause::TargetGone:
      return {TSL_FAULTED, "the process has ended"};
    case Cause::Overdue:
      return {TSL_FAULTED, "a call has not come back in time"};
    case Cause::Stale:
      return {TSL_STALE, "older than what is known"};
    case Cause::Forbidden:
      return {TSL_PERMISSION, "this user may not use the group or the job"};
  }
  return {TSL_INTERNAL, "a cause that this release does not know"};
}

Cause causeOf(BackendOutcome::Code code) {
  using enum BackendOutcome::Code;
  switch (code) {
    case Ok:
    case NoContext:
      return Cause::None;
    case Unsupported:
      return Cause::Unsupported;
    case TargetGone:
    case NotAProcess:
      return Cause::TargetGone;
    case NoSpace:
      return Cause::NoDeviceMemory;
    case TimedOut:
      return Cause::Overdue;
    case WrongState:
    case DriverError:
      return Cause::DriverError;
  }
  return Cause::DriverError;
}

}  // namespace

tsl_status statusOf(Cause cause) {
  return wordsFor(cause).status;
}
const char* nameOf(Cause cause) {
  return wordsFor(cause).name;
}

tsl_status statusOf(BackendOutcome::Code code) {
  using enum BackendOutcome::Code;
  switch (code) {
    case Ok:
      return TSL_OK;
    case NoContext:
      return TSL_NO_CONTEXT;
    case Unsupported:
      return TSL_UNSUPPORTED;
    case TargetGone:
    case NotAProcess:
      return TSL_NO_SUCH_PROCESS;
    case NoSpace:
      return TSL_NO_DEVICE_MEMORY;
    case TimedOut:
      return TSL_TIMED_OUT;
    case WrongState:
      return TSL_INVALID;
    case DriverError:
      return TSL_FAULTED;
  }
  return TSL_INTERNAL;
}

Outcome outcomeOf(const BackendOutcome& o, const std::string& did) {
  using enum BackendOutcome::Code;
  Outcome out{.cause = causeOf(o.code), .lasting = o.lasting, .bytes = o.bytes};
  if (o.ok() || o.code == NoContext) return out;
  out.code = out.cause == Cause::TargetGone ? Outcome::Code::Gone : Outcome::Code::Failed;
  out.detail = did + ": " + (o.detail.empty() ? nameOf(out.cause) : o.detail);
  return out;
}

Residency residencyOf(TargetState state, Residency before) {
  switch (state) {
    case TargetState::NoContext:
      return Residency::Absent;
    case TargetState::Running:
      return Residency::Resident;
    case TargetState::Locked:
      return Residency::Quiet;
    case TargetState::Saved:
      return Residency::Saved;
    case TargetState::Failed:
      return Residency::Faulted;
    case TargetState::Gone:  // its pidfd will tell
    case TargetState::Unknown:
      break;
  }
  return before;
}

Residency residencyOf(const BackendOutcome& o, Residency before) {
  return residencyOf(o.after, before);
}

std::string sentenceFor(const Outcome& outcome) {
  return outcome.detail.empty() ? nameOf(outcome.cause) : outcome.detail;
}

}  // namespace ts::node
