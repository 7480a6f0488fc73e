// Jobs that no switch needs: let go, brought back, made whole.
#include <algorithm>

#include "group.h"
#include "roster.h"

namespace ts {

void Group::settleRest(Step& s) {
  std::vector<Job*> all(unsettled_.begin(), unsettled_.end());
  for (Job* job : all) {
    if (job->plannedIn != derivation_ && !job->slice) settle(s, *job);
  }
}

void Group::settle(Step& s, Job& job) {
  giveUpMove(s, job);
  if (job.unreported > 0) return;  // what lies on its other nodes is not known yet
  if (!job.moving() && !mayNotRun(job)) {
    if (!job.hasSaved()) {
      release(s, job);
    } else if (job.hasOn()) {
      settleHalf(s, job);
    }
    if (job.whole() && job.rescue && !job.unreleased()) setRescue(job, false);
    if (job.whole() && !job.rescue) {
      job.unsavable = job.cameIn = false;
      if (job.unreleased()) undo(job);
    }
  }
  touch(job);
}

// "all of it runs, or none": who is being ended is not let go first, and what has lost a part of
// its state, or stands where it could not be let go, waits for its end or for an operator.
bool Group::mayNotRun(const Job& job) {
  return job.killed || job.fault == FaultKind::Restore || job.fault == FaultKind::Grant;
}

// "the node keeps room booked for O and for I until the grant": also while both are undone. What is
// past its commit point has nothing to undo.
void Group::giveUpMove(Step& s, Job& job) {
  dropCommitted(s, job);
  if (!job.move || job.moving() || (job.cameIn && !job.whole())) return;
  for (JobId id : job.move->outs) {
    const Job* out = roster_.job(id);
    if (out && (out->moving() || out->rescue)) return;
  }
  endMove(s, job);
}

void Group::release(Step& s, Job& job) {
  std::set<NodeId> nodes;
  for (const auto& [id, m] : job.members) {
    if (m.saved() || m.moving) return;  // all of it runs, or none
    if (!m.quiet()) continue;
    if (!roster_.up(m.node)) return;
    const OnNode& here = job.onNode[m.node];
    if (!here.occupied() && !here.backsOff(s.now)) nodes.insert(m.node);
  }
  for (NodeId node : nodes) {
    job.onNode[node].releasing = true;
    give(s, OrderKind::Release, Release{{}, node, job.id});
  }
}

// Half of it is saved and no switch needs it. Quiet, it can stay so until its devices are free; but
// two such jobs, each on the way of the other, would stay so for ever.
void Group::settleHalf(Step& s, Job& job) {
  if (!job.still()) {
    bool tooEarly = job.retryAt && s.now < *job.retryAt;
    if (!tooEarly) quiesce(s, job);  // never saved beside running
    return;
  }
  std::vector<DeviceState*> home = homeOf(job);
  std::vector<Job*> inTheWay = others(job, home);
  bool wanted = std::any_of(home.begin(), home.end(), [](const DeviceState* d) {
    return !d->waiters.empty() || d->holder || d->rescuer;
  });
  bool limbo = std::all_of(inTheWay.begin(), inTheWay.end(), [&](const Job* other) {
    bool half = other->group == this && !other->slice && other->hasSaved();
    return half && job.id < other->id;
  });
  if (wanted || !limbo || job.rescue) return;
  if (!inTheWay.empty()) return setRescue(job, true);
  for (DeviceState* d : home) noteIdle(*d);
}

void Group::setRescue(Job& job, bool on) {
  if (job.rescue == on) return;
  job.rescue = on;
  if (on) {
    rescues_.insert(&job);
    if (job.pinned) pin(job, false);
    repeat_ = true;
    return;
  }
  rescues_.erase(&job);
  job.unsavable = false;
  std::vector<DeviceState*> reserved = job.reserved;
  unreserve(job);
  for (DeviceState* d : reserved) noteIdle(*d);
  repeat_ = changed_ = true;
}

void Group::unreserve(Job& job) {
  for (DeviceState* d : job.reserved) d->rescuer = nullptr;
  job.reserved.clear();
}

void Group::reserveHome(Job& job) {
  for (DeviceState* d : homeOf(job)) {
    if (d->rescuer) continue;
    d->rescuer = &job;
    job.reserved.push_back(d);
  }
}

// --- "a saved job nobody competes with: restored and parked"
// ---------------------------------------

void Group::noteIdle(DeviceState& device) {
  if (!device.saved.empty() && device.idle()) idle_.insert(&device);
}

void Group::bringBack(Instant now) {
  for (DeviceState* device : std::exchange(idle_, {})) {
    if (!device->idle()) continue;
    for (auto& [id, entry] : device->saved) {
      Job& job = *entry.first;
      if (job.group != this || !mayPark(job, now)) continue;
      job.parking = true;
      parking_.insert(&job);
      break;
    }
  }
}

bool Group::mayPark(const Job& job, Instant now) const {
  bool moved = job.slice || job.rescue || job.plannedIn == derivation_;
  bool tooEarly = now < job.parkAfter || (job.retryAt && now < *job.retryAt);
  if (moved || mayNotRun(job) || job.unreported > 0 || tooEarly) return false;
  if (job.queued && !job.heldBack) return false;
  for (const auto& [id, m] : job.members) {
    if (!m.saved() && !m.moving) continue;
    if (m.overdue || !roster_.up(m.node)) return false;
    for (const DeviceState* d : m.at) {
      if (!d->present.onlyOf(job) || d->holder || d->rescuer || !d->waiters.empty()) return false;
      if (d->unsafe > 0) return false;  // a slice there may not have been told of yet
    }
  }
  return true;
}

void Group::planParking(Step& s) {
  std::vector<Job*> all(parking_.begin(), parking_.end());
  for (Job* job : all) {
    if (mayPark(*job, s.now)) {
      advance(s, *job, {}, Purpose::Parking);
    } else {
      job->parking = false;
      parking_.erase(job);
      touch(*job);
    }
  }
}

}  // namespace ts
