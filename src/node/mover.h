// Moves the state of members with their backends, on workers, and measures what moving came to.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/snapshot_backend.h"
#include "log/log.h"
#include "node/registry.h"
#include "node/roll.h"
#include "node/room.h"
#include "node/watch.h"
#include "reactor/soon.h"
#include "reactor/workers.h"

namespace ts::node {

// By the name that a job joins with. "turns" has none: such a job has no members.
using Backends = std::map<std::string, SnapshotBackend*>;

class Mover {
public:
  struct Parts {
    Registry& registry;
    Roll& roll;
    Bookings& bookings;
    Watch& watch;
    Workers& workers;
    kj::Timer& timer;
    Log& log;
    Backends backends;
    kj::Duration freedDeadline = 30 * kj::SECONDS;
  };
  explicit Mover(Parts parts) : parts_(std::move(parts)) {}
  KJ_DISALLOW_COPY(Mover);

  // Each is one order's work. `members` of the outcome: all that it was about, as they are then.
  // Ends at once where the backend has nothing to wait for.
  Soon<Outcome> quiesce(JobName job, kj::Duration deadline);
  Soon<Outcome> release(JobName job);
  Soon<Outcome> save(JobName job, MemberId member);
  Soon<Outcome> restore(JobName job, MemberId member);
  Soon<Outcome> discard(MemberId member);

  // A call of a backend is under way for one of these.
  bool isBusy(const JobName& job) const;
  bool isBusy(MemberId member) const { return busy_.contains(member); }
  // After a restart of the daemon: reads where the state is.
  kj::Promise<void> adopt(MemberId member);
  // What was still on its devices when its save was over, and is seen to be gone now.
  std::vector<MemberId> releasedLate(const Scan& scan);
  SnapshotBackend* backendOf(const JobName& job) const;

  // Resolves to what is left of a process's memory: as soon as it is measured to be no more than
  // `limit`, or at the deadline; to nothing where one of `devices` cannot be measured by then. The
  // one thing that is polled, with growing pauses.
  kj::Promise<std::optional<DeviceBytes>> untilFreed(Identity process,
                                                     std::vector<std::uint32_t> devices,
                                                     Bytes limit, kj::TimePoint deadline);

private:
  using Call = std::function<BackendOutcome(SnapshotBackend&, const Target&)>;
  struct Sweep;  // one quiesce

  Soon<BackendOutcome> run(MemberId member, Residency during, Call call);
  BackendOutcome finish(MemberId member, Residency before, BackendOutcome outcome);
  Soon<Outcome> sweep(kj::Own<Sweep> sweep);
  Soon<Outcome> stopAll(kj::Own<Sweep> sweep);
  Soon<Outcome> sweepBack(JobName job, std::vector<MemberId> locked, Outcome why);
  Soon<Outcome> releaseEach(JobName job, std::vector<MemberId> members);
  Soon<Outcome> measureSaved(JobName job, MemberId member, Outcome moved);
  Soon<Outcome> restoreInto(JobName job, MemberId member, const Scan& scan);
  Soon<Outcome> bringBack(JobName job, MemberId member);
  Outcome checkSaved(const JobName& job, MemberId member, Outcome moved,
                     const std::optional<DeviceBytes>& left);
  kj::Promise<std::optional<DeviceBytes>> pollFreed(Identity process,
                                                    std::vector<std::uint32_t> devices, Bytes limit,
                                                    kj::TimePoint deadline, kj::Duration pause);
  Outcome withMembers(const JobName& job, Outcome outcome);
  Outcome withMember(MemberId member, Outcome outcome);
  Member* memberOf(const JobName& job, MemberId member);
  void setResidency(Member& member, Residency residency);

  Parts parts_;
  std::set<MemberId> busy_;
  std::set<MemberId> looked_;     // adopt() reads where they are, and no call has begun since
  std::set<MemberId> inherited_;  // saved, and a restore of an earlier life may be under way
};

}  // namespace ts::node
