// The contract of a backend: how the device state of one process moves off its devices and back.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ts {

// Where a target's state is, as the backend reads it from below (never as it remembers it).
enum class TargetState { NoContext, Running, Locked, Saved, Failed, Gone, Unknown };

const char* toText(TargetState state);  // "running", "saved"…

struct Target {
  // A thread-group leader. The caller has seen by a pidfd, right before the call, that it still is
  // the process that it means.
  pid_t pid = 0;
  int pidfd = -1;  // its pidfd, open during the call; negative: the number alone says who is meant
};
using DeviceSet = std::vector<std::uint32_t>;  // indices in the node's inventory; empty: all
using Deadline = std::chrono::steady_clock::time_point;

struct Probe {
  bool usable = false;
  std::string detail;     // why not, or what version it found
  int driverVersion = 0;  // as cuDriverGetVersion says: 13000 is 13.0
  std::vector<std::string> features;
};

// How a backend call ended. Expected failures are values; only bugs throw.
struct BackendOutcome {
  enum class Code {
    Ok,
    NoContext,  // the process has no device state: nothing to do, not an error
    Unsupported,
    TargetGone,
    NotAProcess,  // a thread's id, or a number that nobody may move; nothing was done
    NoSpace,      // device memory, on restore
    TimedOut,     // nothing changed
    WrongState,   // the target was not in the state that the call needs
    DriverError,  // `lasting` says whether trying again is pointless
  };
  Code code = Code::Ok;
  std::string detail;                        // for a person, with the driver's name for its error
  TargetState after = TargetState::Unknown;  // read after the call
  std::uint64_t bytes = 0;                   // moved, as measured
  std::chrono::microseconds took{0};
  bool lasting = false;
  bool ok() const { return code == Code::Ok; }
};

// Calls block, for seconds; the node daemon makes them on a worker thread, never two at once for
// the same target. After a failed save the target must still be runnable; after a failed restore it
// must still be saved; where that cannot be kept the outcome is lasting and the target is to be
// ended.
class SnapshotBackend {
public:
  virtual ~SnapshotBackend() = default;

  virtual std::string name() const = 0;
  virtual Probe probe() = 0;
  virtual TargetState state(const Target& target) = 0;
  // No device call of the target makes progress afterwards, nothing is in flight. Always bounded.
  virtual BackendOutcome quiesce(const Target& target, Deadline deadline) = 0;
  virtual BackendOutcome save(const Target& target,
                              const DeviceSet& devices) = 0;  // Locked -> Saved
  virtual BackendOutcome restore(const Target& target,
                                 const DeviceSet& devices) = 0;  // Saved -> Locked
  virtual BackendOutcome release(const Target& target) = 0;      // Locked -> Running
  virtual BackendOutcome discard(
      const Target& target) = 0;                   // the target is gone: free what is kept
  virtual std::uint64_t residueLimit() const = 0;  // bytes that may stay after a save
  // No call ever blocks, and nothing is on a device: calls are made where it is convenient, and
  // what a save frees is not measured.
  virtual bool isWeightless() const { return false; }
};

}  // namespace ts
