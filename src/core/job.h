// One job as its group knows it: participants, members, its slice and its place in the queue.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device_table.h"
#include "event.h"
#include "facts.h"
#include "lock_queue.h"
#include "orders.h"
#include "view.h"

namespace ts {

class Group;
struct Job;

struct Participant {
  enum class Stand { Out, Waiting, In };

  ParticipantId id{};
  Job* job = nullptr;
  NodeId node{};
  ProcessId process{};
  Devices devices;
  Stand stand = Stand::Out;
  RequestId request{};  // the last acquire
  std::uint64_t ticket = 0;
  Epoch done;            // the last slice that it yielded
  Instant since;         // of that acquire
  bool owed = false;     // the gang's running slice waits for it to enter
  bool counted = false;  // it was here when the last of its gang came
  // In the report of its node that is under way: itself, and that it waits or is in the slice.
  bool reported = true;
  bool standReported = true;
};

struct Member {
  MemberFact fact;
  NodeId node{};
  std::vector<DeviceState*> at;     // fact.devices, resolved
  std::optional<OrderKind> moving;  // Save or Restore under way
  bool overdue = false;
  bool inherited = false;  // an earlier master ordered the move: the node tells when it has ended
  bool dead = false;       // on its device until that is measured clear
  bool condemned = false;  // came back with a node that had been declared dead
  bool early = false;      // a restore before the commit point found no room yet
  bool reported = true;
  enum class Listed { Nowhere, Present, Saved } listed = Listed::Nowhere;  // in `at`
  bool lingers = false;                                                    // there, too

  bool on() const;  // something of it is, or may be, on its devices
  bool ours() const { return !dead && !condemned; }
  bool inClaim() const { return ours() && (on() || saved()); }  // of its job
  bool unreleased() const { return saved() && fact.unreleased; }
  bool saved() const { return fact.residency == Residency::Saved && !moving && ours(); }
  bool quiet() const { return fact.residency == Residency::Quiet && !moving && ours(); }
};

// What a booking covers.
struct Booked {
  std::vector<MemberId> outgoing;
  std::vector<MemberId> incoming;

  bool covers(const Booked& need) const;
};

// What a job has on one node, beside its members.
struct OnNode {
  enum class Booking { None, Asked, Held };

  std::uint32_t grants = 0;  // Grant orders under way
  bool quiescing = false;
  bool releasing = false;
  std::uint32_t overdue = 0;          // of the calls that stop the job or let it go
  std::uint32_t overduePrepares = 0;  // of its own switch
  Booking booking = Booking::None;
  OperationId prepare{};
  Booked booked;
  bool killing = false;
  std::uint32_t moves = 0;         // saves and restores under way, of members cleared away, too
  std::uint32_t overdueMoves = 0;  // of these
  // A grant that is given once more: where a member was not let go, or its node had something else
  // to do.
  bool regrant = false;
  std::vector<RequestId> unanswered;   // by it
  Outcome lastRefusal;                 // why
  std::uint32_t unlockFailures = 0;    // in a row, of its grants and releases here
  std::optional<Instant> unlockAfter;  // the back-off of the last of them

  bool backsOff(Instant now) const { return unlockAfter && now < *unlockAfter; }
  bool locking() const { return grants > 0 || quiescing || releasing; }
  // "One operation per member": nothing about the whole job is ordered beside another order.
  bool occupied() const { return locking() || moves > 0; }
};

struct Slice {
  Epoch epoch;
  Instant since;
  Instant lastMove;  // somebody entered or yielded
  Devices devices;   // the granted claim
  std::vector<DeviceState*> on;
  std::uint32_t in = 0;
  std::uint32_t owed = 0;  // of a gang: must still enter
  bool asked = false;      // the holder was asked to yield
  bool recovered = false;  // re-declared by nodes: they may still add to it
};

// What is remembered of a switch is only what saves work; losing it costs another prepare.
struct Switch {
  std::vector<JobId> outs;  // whose room is booked
  bool prepared = false;
  bool committed = false;  // all that must go is saved
  bool moved = false;
  bool restored = false;
  std::uint64_t bytes = 0;
};

struct Job {
  JobId id{};
  Group* group = nullptr;
  JobOptions options;
  std::map<ParticipantId, Participant> participants;
  std::map<MemberId, Member> members;
  std::map<NodeId, OnNode> onNode;
  std::set<NodeId> named;        // every node that it is known to be on
  std::uint32_t unreported = 0;  // of these, how many have neither reported nor died
  bool hasGathered = false;      // a gang's N were all here once, maybe in an earlier master's life

  Devices claim;
  bool claimKnown = false;       // widened, and nothing that it follows from has changed since
  std::vector<DeviceState*> on;  // claim, resolved
  std::optional<Slice> slice;
  Epoch lastEpoch;

  // Its place in the queue.
  std::vector<Participant*> waiting;  // in the order of their calls
  bool queued = false;
  bool heldBack = false;   // keeps its place, holds nobody back
  bool pinned = false;     // its switch has begun: nobody overtakes it any more
  bool finishing = false;  // nobody waits any more, but the switch is past its first save
  Place place;
  Instant since;

  std::optional<Switch> move;
  bool cameIn = false;   // some of it was restored on approval
  bool rescue = false;   // a save of it failed: it must be made whole before anybody else is served
  bool parking = false;  // nobody competes: it is brought back
  bool unsavable = false;              // a save failed; until it is whole again
  std::vector<DeviceState*> reserved;  // kept for its rescue

  FaultKind fault = FaultKind::None;
  Cause faultCause =
      Cause::None;  // as it came; the turns that a faulted job may still have keep it
  std::string faultDetail;
  Instant faultSince, brokenSince;
  Cause cause = Cause::None;  // why it waits, cannot be moved, or is faulted
  JobId blocker{};
  std::uint64_t need = 0;
  std::uint64_t free = 0;
  std::string detail;
  Cause told = Cause::None;  // of the last notice, so that it is said once
  std::optional<Instant> retryAt;
  Instant parkAfter;           // no room was found to bring it back without a turn
  std::uint32_t failures = 0;  // in a row, of moving it
  std::uint32_t refusals = 0;  // in a row, of its prepares
  std::optional<Instant> holdTimer, gangTimer, brokenTimer, retryTimer;
  bool broken = false;
  std::string lost;  // what it is broken by
  bool evicted = false;
  bool killed = false;
  Cause killedFor = Cause::None;  // `cause` may speak of a later failure

  // Marks of the derivation under way.
  std::uint64_t plannedIn = 0;  // the number of the derivation that gave it a part in a switch
  std::uint64_t lookedIn = 0;   // ... that asked whether its turn has come

  // Each member by its name: one of many ranks that hangs is looked for by its pid.
  std::string lateCalls() const;
  bool gathered() const { return hasGathered || options.gang == 0; }
  bool complete() const;  // "A job is queued only when its claim is complete"
  bool still() const;     // barrier 1: no member of it runs, anywhere
  bool moving() const;    // a save or restore is under way
  bool hasSaved() const;
  bool hasOn() const;
  bool unreleased() const;  // what is saved of it may still be on its devices
  bool whole() const { return !hasSaved() || !hasOn(); }
  bool runs(const Member& member) const;
};

}  // namespace ts
