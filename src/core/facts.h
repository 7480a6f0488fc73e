// What nodes tell about jobs, members and orders: the values inside events and actions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ids.h"

namespace ts {

// Where a member's device state is, always as last read from the driver, never as assumed.
enum class Residency { Absent, Resident, Quiescing, Quiet, Saving, Saved, Restoring, Faulted };

// Why an answer is no, or why a waiter still waits. The spelling users see is in describe.cpp.
enum class Cause {
  None,
  UnknownGroup,
  UnknownParticipant,
  DeviceOwned,     // a device of the claim belongs to another group
  NoClaim,         // a claim without devices
  NotEntered,      // a yield without a slice; said by nodes, which answer it themselves
  AlreadyWaiting,  // this participant waits already
  AlreadyEntered,  // this participant is in the slice already
  Busy,            // a try-acquire, and the turn is not free now
  Deadlock,        // granting this wait would close a cycle
  Cancelled,
  Paused,          // an operator paused the group
  Evicted,         // an operator ended the job's part in the group
  NoHostMemory,    // the node has no room for what would be saved
  NoDeviceMemory,  // the device lacks room for what would be restored
  NotReleased,     // saved, but the bytes are still seen on the device
  Stranger,        // reserved: NoDeviceMemory names strangers, with pid and bytes
  NodeSuspect,     // it does not answer, or answers an order with an exception
  NodeDead,
  JobFaulted,   // the job itself cannot be moved
  Blocked,      // another job that cannot be moved sits on the claim; see `holder`
  Broken,       // a gang lost a participant
  Outside,      // a member was seen on a device outside the job's claim
  Unsupported,  // the backend cannot do this here
  DriverError,
  TargetGone,
  Overdue,
  Stale,      // fenced off: epoch, generation or operation id is old
  Forbidden,  // the user may not use the group or the job
  Drained,    // an operator drains a node of the claim
  NoRecord,   // a node cannot write down what it does
};

// Whether all of a gang were there at once.
enum class Gathering {
  Unknown,  // nobody has said
  No,
  Yes,
};

enum class FaultKind { None, Quiesce, Save, Restore, Grant };

// One member as a node reports it.
struct MemberFact {
  MemberId member{};
  Residency residency = Residency::Absent;
  std::uint64_t bytes =
      0;  // device memory: on the device when resident, in the snapshot when saved
  std::uint64_t residue = 0;  // bytes that stay on the device while it is saved
  Devices devices;
  bool unreleased = false;  // saved, and what was saved is not yet seen to be gone
};

// How an order to a node ended.
struct Outcome {
  enum class Code {
    Ok,
    Refused,  // nothing changed, nothing is wrong: may be tried again later
    Failed,   // tried and failed; `members` says where that left them
    Gone,     // the job or member has ended
  };
  Code code = Code::Ok;
  Cause cause = Cause::None;
  std::uint64_t need = 0;  // bytes, for memory causes
  std::uint64_t free = 0;
  bool lasting = false;             // Failed: trying again is pointless
  std::string detail;               // for a person, with the value that caused it
  std::uint64_t bytes = 0;          // moved by this order
  std::vector<MemberFact> members;  // read after the call
  bool ok() const { return code == Code::Ok; }
};

}  // namespace ts
