// Everything the core can ask of the world. Imperative: the shell carries it out, in order.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "facts.h"
#include "ids.h"
#include "names.h"

namespace ts {

// Orders to a node. Each ends in exactly one OrderFinished with its operation. Within a node they
// are delivered in the order given.
struct Prepare {  // book host room for `outgoing`, check the driver, `incoming`'s snapshots, the
                  // room
  OperationId operation;
  NodeId node;
  JobId job;  // the waiter whose switch this is: the booking is in its name
  std::vector<MemberId> outgoing;
  std::vector<MemberId> incoming;
};
struct DropBooking {  // of a switch that ends without a grant
  OperationId operation;
  NodeId node;
  JobId job;
};
struct Quiesce {  // all members of the job on the node, to a fixed point
  OperationId operation;
  NodeId node;
  JobId job;
  Duration deadline;
};
struct Release {
  OperationId operation;
  NodeId node;
  JobId job;
};
struct Save {
  OperationId operation;
  NodeId node;
  JobId job;
  MemberId member;
  Devices devices;  // all of the member's, unless the backend moves by device
};
struct Restore {
  OperationId operation;
  NodeId node;
  JobId job;
  MemberId member;
  Devices devices;
};
struct Grant {  // record, unlock, answer `requests`; the same epoch again admits more participants
  OperationId operation;
  NodeId node;
  JobId job;
  Epoch epoch;
  Devices devices;  // of the claim, on this node
  std::vector<RequestId> requests;
  Duration waited{};
  bool restored = false;
  std::uint64_t bytes = 0;  // moved for this grant, both ways, all nodes
};
struct EndSlice {  // the devices of the job on the node are granted to nobody from now on
  OperationId operation;
  NodeId node;
  JobId job;
  Epoch epoch;
};
struct Discard {  // drop what is kept of a member that is gone
  OperationId operation;
  NodeId node;
  JobId job;
  MemberId member;
};
struct Kill {
  OperationId operation;
  NodeId node;
  JobId job;
  Cause why;
};

// Answers and notices. They have no outcome.
struct Refuse {
  RequestId request;
  Cause cause;
  JobId holder{};  // who is in the way, if somebody is
  std::uint64_t need = 0;
  std::uint64_t free = 0;
  std::string detail;
};
struct AskToYield {
  NodeId node;
  JobId job;
  Epoch epoch;
};
// Something a person may want to know; the shell logs it and counts it.
struct Notice {
  enum class Kind {
    SwitchStarted,
    SwitchFinished,
    SwitchRolledBack,
    SliceEnded,
    JobFaulted,
    JobBroken,
    Outside,
    ReentryLetIn,
    MissedSlice,
    GangGathered,    // its N are there: said before any order that follows from it
    WaiterHeldBack,  // refused for a passing cause; keeps its place
    StaleDropped,
    JoinRefused,  // the job or participant just declared was not taken in; `cause` says why
  };
  Kind kind;
  GroupId group{};
  JobId job{};
  NodeId node{};
  Cause cause = Cause::None;
  FaultKind fault = FaultKind::None;
  std::string detail;
};

using Action = std::variant<Prepare, DropBooking, Quiesce, Release, Save, Restore, Grant, EndSlice,
                            Discard, Kill, Refuse, AskToYield, Notice>;
using Actions = std::vector<Action>;

std::string describe(const Action&);
std::string describe(const Action&, const Names&);

}  // namespace ts
