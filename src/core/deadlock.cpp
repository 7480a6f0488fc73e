#include "deadlock.h"

#include <set>

#include "job.h"
#include "roster.h"

namespace ts {
namespace {

// "A slice waits for participants that must still enter or yield it, a participant waits for the
// slice that blocks its acquire." A walk along both kinds of edge, from the job that is asked for.
class Walk {
public:
  Walk(const Roster& roster, ProcessId start) : roster_(roster), start_(start) {}

  // Whether a turn of `job` waits for the process we started from.
  bool turnWaits(const Job& job) {
    if (!seen_.insert(job.id).second) return false;
    for (const DeviceState* d : job.on) {
      if (d->holder && sliceWaits(*d->holder)) return true;
    }
    // Who stands before it must first get the turn, and then finish it.
    for (const DeviceState* d : job.on) {
      for (const auto& entry : d->waiters) {
        if (entry.job == &job || (job.queued && job.place < entry.place)) break;
        if (needsEntry(*entry.job) || turnWaits(*entry.job)) {
          found_ = entry.job->id;
          return true;
        }
      }
    }
    return false;
  }
  JobId found() const { return found_; }

private:
  bool sliceWaits(const Job& holder) {
    for (const auto& [id, p] : holder.participants) {
      bool must = p.stand == Participant::Stand::In || p.owed;
      if (!must || !processWaits(p)) continue;
      found_ = holder.id;  // the outermost has the last word: it is the one in the way
      return true;
    }
    return false;
  }
  // A gang that has not its turn yet needs all its participants for it.
  bool needsEntry(const Job& job) {
    if (job.options.gang == 0) return false;
    for (const auto& [id, p] : job.participants) {
      if (p.stand == Participant::Stand::Out && processWaits(p)) return true;
    }
    return false;
  }
  bool processWaits(const Participant& p) {
    if (p.process == start_) return true;
    auto it = roster_.processes.find(p.process);
    if (it == roster_.processes.end()) return false;
    for (const Participant* other : it->second) {
      if (other->stand == Participant::Stand::Waiting && turnWaits(*other->job)) return true;
    }
    return false;
  }

  const Roster& roster_;
  ProcessId start_;
  std::set<JobId> seen_;
  JobId found_{};
};

}  // namespace

std::optional<JobId> closesCycle(const Roster& roster, const Participant& asking) {
  auto it = roster.processes.find(asking.process);
  if (it == roster.processes.end() || it->second.size() < 2)
    return std::nullopt;  // nothing to close
  Walk walk(roster, asking.process);
  if (!walk.turnWaits(*asking.job)) return std::nullopt;
  return walk.found();
}

}  // namespace ts
