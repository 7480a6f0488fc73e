// Everything that can happen. Past tense: an event is a fact, not a wish.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "facts.h"
#include "ids.h"
#include "names.h"

namespace ts {

enum class OnBroken { Kill, Keep };

// Of a job's priority, either way. More would overflow the places that ageing computes.
inline constexpr int kMaxPriority = 10'000;

struct JobOptions {
  std::uint32_t gang = 0;  // participants that make one slice; 0: no gang
  int priority = 0;        // larger goes first under the policy `priority`
  OnBroken onBroken = OnBroken::Kill;
};

// Nodes. A report is: NodeJoined, then the facts of its jobs, then NodeReported.
struct NodeJoined {  // also on return after a loss or under a new generation
  NodeId node;
  Devices devices;
};
struct NodeReported {
  NodeId node;
};
struct NodeSuspected {
  NodeId node;
};
struct NodeDied {  // by verdict: Slurm, an operator, or a limit
  NodeId node;
};
struct NodeDrained {  // no new grant on its devices until undrained
  NodeId node;
  bool on;
};

// Jobs, participants, members.
struct JobDeclared {
  JobId job;
  GroupId group;
  JobOptions options;
  std::vector<NodeId> nodes = {};  // all that the reporter knows the job to be on
  bool gathered = false;  // an earlier master told the reporter so: a gang's N were there at once
};
struct JobEnded {  // nothing of it is left on any node
  JobId job;
};
struct ParticipantJoined {
  ParticipantId participant;
  JobId job;
  NodeId node;
  ProcessId process;
  Devices devices;  // what it claims on its node
};
struct ParticipantLeft {
  ParticipantId participant;
  bool died;            // without leaving: a gang is then broken
  bool undone = false;  // it has not joined: its node never had the answer
};
struct MemberSeen {  // new, or changed without an order of ours
  JobId job;
  NodeId node;
  MemberFact fact;
};
struct MemberDied {  // by its pidfd; its memory may still be held
  MemberId member;
};
struct MemberCleared {  // measured: nothing of a dead member is left on its devices
  MemberId member;
};

// Turns.
struct AcquireRequested {
  RequestId request;
  ParticipantId participant;
  bool tryOnly = false;      // answer at once
  std::uint64_t ticket = 0;  // place kept from an earlier generation; 0: a new place
};
struct AcquireCancelled {  // given up, timed out, or its caller is gone
  RequestId request;
};
struct Yielded {
  ParticipantId participant;
  Epoch epoch;
};
// A node re-declares, after a restart of the master, that a participant is in a slice.
struct SliceReported {
  ParticipantId participant;
  Epoch epoch;
};

// A node re-declares that the slice is recorded there, also when nobody on it is inside any more:
// other nodes may still have some that are.
struct GrantReported {
  JobId job;
  NodeId node;
  Epoch epoch;
  Devices devices;  // of the slice, on this node
};

// Orders.
struct OrderFinished {
  OperationId operation;
  Outcome outcome;
};
struct OrderOverdue {  // past its deadline and still running: not an end
  OperationId operation;
  std::string detail = {};  // for a person: which call, about which processes
};

// Time and operators.
struct TimePassed {};
struct GroupPaused {
  GroupId group;
  bool on;
};
struct JobEvicted {
  JobId job;
  bool kill;
};
struct FaultCleared {
  JobId job;
};

using Event = std::variant<NodeJoined, NodeReported, NodeSuspected, NodeDied, NodeDrained,
                           JobDeclared, JobEnded, ParticipantJoined, ParticipantLeft, MemberSeen,
                           MemberDied, MemberCleared, AcquireRequested, AcquireCancelled, Yielded,
                           SliceReported, GrantReported, OrderFinished, OrderOverdue, TimePassed,
                           GroupPaused, JobEvicted, FaultCleared>;

std::string describe(const Event&);
std::string describe(const Event&, const Names&);

}  // namespace ts
