// Which switches are due: read off the queue, the residencies and the grants after every step.
#include <algorithm>

#include "describe.h"
#include "group.h"
#include "mention.h"
#include "roster.h"

namespace ts {

void Group::derive(Instant now, Actions& out) {
  Step s{now, out};
  if (std::exchange(changed_, false)) readmitAll();
  admitLate(s);
  grantRest(s);
  do {
    repeat_ = false;
    ++derivation_;
    planRescues(s);
    planTurns(s);
    bringBack(s.now);
    planParking(s);
    settleRest(s);
  } while (repeat_);
  askHolders(s);
  watchBroken(s);
}

// --- rescues: "what was saved of O is restored; O released: whole"
// ---------------------------------

void Group::planRescues(Step& s) {
  std::vector<Job*> all(rescues_.begin(), rescues_.end());
  // Who was there first comes back first.
  std::stable_sort(all.begin(), all.end(),
                   [](const Job* a, const Job* b) { return a->cameIn < b->cameIn; });
  for (Job* job : all) unreserve(*job);
  for (Job* job : all) reserveHome(*job);
  for (Job* job : all) {
    if (job->plannedIn != derivation_ && rescues_.count(job)) planRescue(s, *job);
  }
}

void Group::planRescue(Step& s, Job& job) {
  if (!job.hasOn() && !job.moving() && !job.unreleased()) {
    return setRescue(job, false);  // all of it is saved after all
  }
  std::vector<Job*> outs = others(job, homeOf(job));
  bool blocked = job.retryAt && s.now < *job.retryAt && !job.moving() && outs.empty();
  blocked |= job.unreported > 0 || job.slice;
  for (const auto& [id, m] : job.members) blocked |= !roster_.up(m.node);
  for (const DeviceState* d : homeOf(job)) blocked |= d->unsafe > 0 || d->holder;
  for (Job* out : outs) {
    // "Cannot I be saved, I is faulted and ended by policy: O wins."
    if (out->fault == FaultKind::Save && loses(*out, job)) endByPolicy(s, *out, out->cause);
    blocked |= outObstacle(*out, job, homeOf(job), s.now).kind != Obstacle::Kind::None;
  }
  job.plannedIn = derivation_;
  if (!blocked) advance(s, job, outs, Purpose::Rescue);
}

bool Group::loses(const Job& job, const Job& against) {
  if (job.killed || job.slice) return false;
  return job.cameIn || (!against.cameIn && job.hasSaved() && against.id < job.id);
}

// --- turns
// -----------------------------------------------------------------------------------------

// "In the policy's order a later waiter may pass an earlier one only if they do not conflict": only
// who is first on every device of its claim is looked at.
void Group::planTurns(Step& s) {
  for (bool again = true; again;) {
    again = false;
    for (Job* job : fronts()) {
      if (job->lookedIn == derivation_) continue;
      job->lookedIn = derivation_;
      again |= planTurn(s, *job);
    }
  }
}

std::vector<Job*> Group::fronts() const {
  std::vector<Job*> all;
  for (const DeviceState* d : contested_) {
    Job* job = d->waiters.front();
    bool first = job->lookedIn != derivation_ && d == job->on.front();
    if (first && frontEverywhere(*job)) all.push_back(job);
  }
  std::sort(all.begin(), all.end(), [](const Job* a, const Job* b) { return a->place < b->place; });
  return all;
}

bool Group::frontEverywhere(const Job& job) const {
  return std::all_of(job.on.begin(), job.on.end(),
                     [&](const DeviceState* d) { return d->waiters.front() == &job; });
}

// True when the job left the queue, or its place in it: somebody else may be first now.
bool Group::planTurn(Step& s, Job& job) {
  std::vector<Job*> outs = others(job, job.on);
  Obstacle o = obstacle(job, outs, s.now);
  if (o.kind != Obstacle::Kind::None) dropCommitted(s, job);
  switch (o.kind) {
    case Obstacle::Kind::None:
      return advance(s, job, outs, Purpose::Turn);
    case Obstacle::Kind::Wait:
      job.cause = o.cause;
      job.blocker = o.holder;
      job.detail = o.detail;
      return false;
    case Obstacle::Kind::HoldBack:
      holdBack(s, job, o);
      return true;
    case Obstacle::Kind::Refuse:
      refuseAll(s, job, o);
      return true;
  }
  return false;
}

// Jobs with something on the devices, beside the job itself.
std::vector<Job*> Group::others(const Job& job, const std::vector<DeviceState*>& devices) const {
  std::vector<Job*> all;
  for (const DeviceState* d : devices) {
    for (const auto& [other, count] : d->present) {
      if (other != &job) all.push_back(other);
    }
  }
  std::sort(all.begin(), all.end(), ById{});
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Where the state that left must come back to.
std::vector<DeviceState*> Group::homeOf(const Job& job) {
  std::vector<DeviceState*> all;
  for (const auto& [id, m] : job.members) {
    if (m.saved() || m.moving) all.insert(all.end(), m.at.begin(), m.at.end());
  }
  std::sort(all.begin(), all.end(), ByDevice{});
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Group::Obstacle Group::obstacle(const Job& job, const std::vector<Job*>& outs, Instant now) const {
  // "two jobs conflict when their claims share a device"
  for (const DeviceState* d : job.on) {
    if (d->holder) return {Obstacle::Kind::Wait, Cause::Busy, d->holder->id};
    if (d->rescuer && d->rescuer != &job) {
      return {Obstacle::Kind::Wait, Cause::Busy, d->rescuer->id};
    }
  }
  // "a job is part of at most one switch"
  if (job.slice || job.rescue || job.plannedIn == derivation_) return {Obstacle::Kind::Wait};
  if (Obstacle o = ownObstacle(job, now); o.kind != Obstacle::Kind::None) return o;
  if (Obstacle o = lingering(job); o.kind != Obstacle::Kind::None) return o;
  for (const Job* out : outs) {
    Obstacle o = outObstacle(*out, job, job.on, now);
    if (o.kind != Obstacle::Kind::None) return o;
  }
  return {};
}

// "granted when every device of its claim is clear: measured"
Group::Obstacle Group::lingering(const Job& job) {
  for (const DeviceState* d : job.on) {
    for (const auto& [other, count] : d->lingering) {
      if (other == &job) continue;
      std::string what = "its memory is not seen to have left " + mention(d->id);
      return {Obstacle::Kind::HoldBack, Cause::NotReleased, other->id, std::move(what)};
    }
  }
  return {};
}

Group::Obstacle Group::ownObstacle(const Job& job, Instant now) const {
  auto held = [](Cause cause, std::string detail = {}) {
    return Obstacle{Obstacle::Kind::HoldBack, cause, {}, std::move(detail)};
  };
  bool begun = job.move && job.move->moved;
  if (paused_ && !begun) return held(Cause::Paused);
  for (const Device& d : job.claim) {
    const Node& node = roster_.nodes[d.node];
    if (node.state != Node::State::Up) {
      bool dead = node.state == Node::State::Dead;
      return held(dead ? Cause::NodeDead : Cause::NodeSuspect, mention(d.node));
    }
    if (node.drained) return held(Cause::Drained, mention(d.node));
  }
  // "a grant needs a report of this generation, or a verdict, from each node in the claims of the
  // job and of all that conflict with it"
  bool unsafe =
      std::any_of(job.on.begin(), job.on.end(), [](const DeviceState* d) { return d->unsafe > 0; });
  if (unsafe) return held(Cause::NodeSuspect, "a node of a conflicting job has not reported yet");
  if (unreported_ > 0 && roster_.inGrace(now)) {
    return held(Cause::NodeSuspect, "the order of the queue is not known yet");
  }
  for (const auto& [id, m] : job.members) {
    if (m.moving && !roster_.up(m.node)) return held(Cause::NodeSuspect, mention(m.node));
    if (m.dead) continue;
    if (m.overdue) return held(Cause::Overdue, job.lateCalls());
    if (!roster_.up(m.node)) return held(Cause::NodeSuspect, mention(m.node));
    for (const DeviceState* d : m.at) {
      bool away = m.saved() && d->claims > 0 && d->owner != id_ && !d->present.empty();
      if (away) return held(Cause::Outside, "a job of another group is where it was saved");
    }
  }
  for (const auto& [node, here] : job.onNode) {
    if (here.overdue > 0 || here.overduePrepares > 0 || here.overdueMoves > 0) {
      return held(Cause::Overdue, "a call on " + mention(node));
    }
  }
  if (job.retryAt && now < *job.retryAt && !job.moving()) return held(job.cause, job.detail);
  return {};
}

Group::Obstacle Group::outObstacle(const Job& out, const Job& incoming,
                                   const std::vector<DeviceState*>& wanted, Instant now) const {
  auto held = [&](Cause cause, std::string detail = {}) {
    return Obstacle{Obstacle::Kind::HoldBack, cause, out.id, std::move(detail)};
  };
  if (out.group != this) return held(Cause::Outside, "a job of another group is on the device");
  // "no state moves while its job holds"; "a job is part of at most one switch"
  if (out.slice || out.plannedIn == derivation_) {
    return {Obstacle::Kind::Wait, Cause::Busy, out.id};
  }
  if (out.unreported > 0) return held(Cause::NodeSuspect, "a node of it has not reported yet");
  if (out.killed) return held(Cause::Blocked, "it is being ended");
  for (const auto& [id, m] : out.members) {
    if (!m.on() || !touches(m, wanted)) continue;
    // "its device is clear when measured"
    if (m.dead) return held(Cause::NotReleased, mention(id) + " has died");
    if (m.condemned) return held(Cause::NodeDead, mention(id) + " is being ended");
    if (m.overdue) return held(Cause::Overdue, out.lateCalls());
    if (!roster_.up(m.node)) return held(Cause::NodeSuspect, mention(m.node));
    if (m.fact.residency == Residency::Faulted) {
      return {Obstacle::Kind::Refuse, Cause::Blocked, out.id, out.detail};
    }
  }
  // "whole, resident, may still be granted its own devices; others on them are refused with its
  // name"
  bool stuck = out.fault == FaultKind::Quiesce || out.fault == FaultKind::Save ||
               out.fault == FaultKind::Grant;
  if (stuck && !incoming.rescue) {
    return {Obstacle::Kind::Refuse, Cause::Blocked, out.id, out.faultDetail};
  }
  if (stuck) return held(Cause::Blocked, out.faultDetail);
  if (out.rescue && !incoming.rescue) return held(out.cause, out.detail);
  if (out.retryAt && now < *out.retryAt) return held(out.cause, out.detail);
  for (const auto& [id, m] : out.members) {
    if (!out.runs(m)) continue;
    if (!roster_.up(m.node)) return held(Cause::NodeSuspect, mention(m.node));
    auto here = out.onNode.find(m.node);
    if (here != out.onNode.end() && here->second.overdueMoves > 0) {
      return held(Cause::Overdue, "a call on " + mention(m.node));
    }
  }
  for (const auto& [node, here] : out.onNode) {
    if (here.overdue > 0) return held(Cause::Overdue, "a call on " + mention(node));
    if (here.locking() && !roster_.up(node)) {
      return held(Cause::NodeSuspect, mention(node));
    }
  }
  return {};
}

// "A waiter whose switch was refused for a passing cause keeps its place and is tried first at
// every change, but holds nobody back; the cause stands in `tsctl status`"
void Group::holdBack(Step& s, Job& job, const Obstacle& o) {
  job.cause = o.cause;
  job.blocker = o.holder;
  job.detail = o.detail;
  if (job.finishing) return dequeue(job);
  pin(job, false);
  unlistWaiter(job);
  job.heldBack = true;
  heldBack_.insert(&job);
  touch(job);
  if (std::exchange(job.told, o.cause) != o.cause) {
    notice(s, Notice::Kind::WaiterHeldBack, job, o.cause, o.detail);
  }
}

void Group::readmit(Job& job) {
  if (!job.heldBack) return;
  heldBack_.erase(&job);
  job.heldBack = false;
  listWaiter(job);
}

void Group::readmitAll() {
  std::vector<Job*> all(heldBack_.begin(), heldBack_.end());
  for (Job* job : all) readmit(*job);
}

void Group::refuseAll(Step& s, Job& job, const Obstacle& o) {
  std::vector<Participant*> waiting = job.waiting;
  for (Participant* p : waiting) refuse(s, *p, o.cause, o.holder, o.detail);
  if (job.queued) dequeue(job);
}

}  // namespace ts
