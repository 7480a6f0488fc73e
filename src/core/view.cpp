// What a group shows of itself.
#include <algorithm>

#include "group.h"
#include "roster.h"

namespace ts {
namespace {

JobPhase phaseOf(const Job& job, bool switching) {
  if (job.fault != FaultKind::None) return JobPhase::Faulted;
  if (job.broken) return JobPhase::Broken;
  if (job.slice) return JobPhase::Holding;
  if (switching) return JobPhase::Switching;  // its own, or it leaves for another
  if (job.queued || !job.waiting.empty()) return JobPhase::Waiting;
  return job.hasOn() ? JobPhase::Parked : JobPhase::Idle;
}

Residency shown(const Job& job, const Member& m) {
  if (m.moving) return *m.moving == OrderKind::Save ? Residency::Saving : Residency::Restoring;
  auto here = job.onNode.find(m.node);
  bool quiescing = here != job.onNode.end() && here->second.quiescing;
  bool running = m.fact.residency == Residency::Resident;
  return quiescing && running ? Residency::Quiescing : m.fact.residency;
}

// The waiter that it is being moved out for, if any.
const Job* incomingOf(const Job& job) {
  for (const auto& [id, m] : job.members) {
    for (const DeviceState* d : m.at) {
      const Job* first = d->waiters.empty() ? nullptr : d->waiters.front();
      if (!first || !first->move || first == &job) continue;
      const auto& outs = first->move->outs;
      bool leaves = std::find(outs.begin(), outs.end(), job.id) != outs.end();
      if (leaves && first->move->prepared) return first;
    }
  }
  return nullptr;
}

}  // namespace

GroupView Group::view() const {
  GroupView v{id_, paused_, {}, {}, switches_};
  for (const Job* job : jobs_) {
    if (job->slice) v.holders.push_back(job->id);
  }
  for (const auto& entry : queue_) v.queue.push_back(entry.job->id);
  return v;
}

void Group::addJobs(std::vector<JobView>& all) const {
  for (const Job* job : jobs_) all.push_back(view(*job));
}

JobView Group::view(const Job& job) const {
  JobView v;
  v.job = job.id;
  v.group = id_;
  const Job* incoming = job.queued ? nullptr : incomingOf(job);
  v.phase = phaseOf(job, incoming || (job.move && job.queued && !job.heldBack));
  v.priority = job.options.priority;
  v.participants = std::uint32_t(job.participants.size());
  v.entered = job.slice ? job.slice->in : 0;
  v.claim = job.claim;
  v.epoch = job.slice ? job.slice->epoch : job.lastEpoch;
  if (job.slice) v.since = job.slice->since;
  if (!job.slice && job.queued) v.since = job.since;
  // What it waited for once is no news of a job that has had its turn since.
  if (job.queued || job.killed) v.cause = job.cause;
  if (v.cause != Cause::None) v.detail = job.detail;
  if (v.phase == JobPhase::Broken) v.since = job.brokenSince;
  if (job.fault != FaultKind::None) {
    v.cause = job.faultCause;
    v.detail = job.faultDetail;
    v.since = job.faultSince;
  }
  v.fault = job.fault;
  if (job.queued) addQueue(job, v);
  if (incoming && v.phase == JobPhase::Switching) v.waitsFor.push_back(incoming->id);
  if (!job.queued && !job.waiting.empty() && !job.slice) {
    v.cause = Cause::NoClaim;
    v.detail = std::to_string(job.participants.size()) + " of " + std::to_string(job.options.gang) +
               " participants have joined";
  }
  for (const auto& [id, m] : job.members) {
    v.members.push_back({id, m.node, shown(job, m), m.fact.bytes, m.fact.devices});
  }
  return v;
}

// Who is before it: the holders of its devices, who stands before it there, whose state must leave.
void Group::addQueue(const Job& job, JobView& v) const {
  for (const auto& entry : queue_) {
    ++v.place;
    if (entry.job == &job) break;
  }
  Jobs before;
  for (DeviceState* d : job.on) {
    if (d->holder) before.insert(d->holder);
    if (d->rescuer) before.insert(d->rescuer);
    for (const auto& [other, count] : d->present) before.insert(other);
    for (const auto& entry : d->waiters) {
      if (!(entry.place < job.place)) break;
      before.insert(entry.job);
    }
  }
  for (const Job* other : before) {
    if (other != &job) v.waitsFor.push_back(other->id);
  }
}

}  // namespace ts
