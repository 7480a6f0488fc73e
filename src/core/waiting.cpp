// From acquire to grant: who waits, and in which place.
#include <algorithm>
#include <utility>

#include "deadlock.h"
#include "group.h"
#include "roster.h"

namespace ts {

void Group::on(Step& s, const AcquireRequested& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  if (p.stand != Participant::Stand::Out) return askedAgain(s, p, e);
  roster_.requests.erase(p.request);
  p.request = e.request;
  p.since = s.now;
  p.standReported = true;
  if (job.killed || job.evicted) return refuse(s, p, job.evicted ? Cause::Evicted : job.killedFor);
  if (job.fault == FaultKind::Restore || job.fault == FaultKind::Grant) {
    return refuse(s, p, Cause::JobFaulted, job.id, job.faultDetail);
  }
  reclaim(s, job, true);
  if (job.claim.empty() && job.gathered()) return refuse(s, p, Cause::NoClaim);
  if (mayEnter(p, s.now)) return enter(s, p);
  p.ticket = e.ticket ? e.ticket : ++roster_.tickets;
  roster_.tickets = std::max(roster_.tickets, p.ticket);
  if (e.tryOnly && !freeNow(job, s.now)) {
    return refuse(s, p, paused_ ? Cause::Paused : Cause::Busy);
  }
  if (auto holder = closesCycle(roster_, p)) return refuse(s, p, Cause::Deadlock, *holder);
  wait(s, p);
}

// A node that re-declares its waiters after a new connection may have numbered them anew.
void Group::askedAgain(Step& s, Participant& p, const AcquireRequested& e) {
  bool waits = p.stand == Participant::Stand::Waiting;
  bool reporting = roster_.nodes[p.node].state == Node::State::Reporting;
  if (waits && (p.request == e.request || reporting)) {
    roster_.requests.erase(p.request);
    p.request = e.request;
    roster_.requests[p.request] = &p;
    p.standReported = true;
    return;
  }
  if (p.request == e.request) {  // answered by a grant that is on its way
    p.standReported = true;
    return;
  }
  if (!waits && p.job->slice && (reporting || !p.standReported)) {
    // The grant named it by a number that its node has forgotten: once more, by the new one.
    roster_.requests.erase(p.request);
    p.request = e.request;
    roster_.requests[p.request] = &p;
    p.standReported = true;
    return giveGrant(s, *p.job, p.node, {p.request}, s.now - p.since, {});
  }
  s.out.push_back(Refuse{e.request, waits ? Cause::AlreadyWaiting : Cause::AlreadyEntered});
}

void Group::on(Step& s, const AcquireCancelled& e) {
  auto it = roster_.requests.find(e.request);
  Participant& p = *it->second;
  if (p.stand == Participant::Stand::Waiting) return stopWaiting(p);
  leaveSlice(s, p);  // its node gave it up before the grant arrived there
  roster_.requests.erase(std::exchange(p.request, RequestId{}));
}

void Group::wait(Step& s, Participant& p) {
  Job& job = *p.job;
  p.stand = Participant::Stand::Waiting;
  roster_.requests[p.request] = &p;
  job.waiting.push_back(&p);
  enqueueWhenComplete(s, job);
  if (job.slice) late_.insert(&job);
  armGang(job);
}

// Who waits beside the running slice of its job is let in when nothing speaks against it any more.
void Group::admitLate(Step& s) {
  std::vector<Job*> all(late_.begin(), late_.end());
  for (Job* job : all) {
    std::vector<Participant*> waiting = job->waiting;
    for (Participant* p : waiting) {
      if (!mayEnter(*p, s.now)) continue;
      stopWaiting(*p);
      enter(s, *p);
    }
    if (!job->slice || job->waiting.empty()) late_.erase(job);
  }
}

// "I's last waiting call ends in mid-switch: before the first save O is released; after it the
// switch completes, I is parked ungranted, the next waiter is served"
void Group::stopWaiting(Participant& p) {
  Job& job = *p.job;
  std::erase(job.waiting, &p);
  roster_.requests.erase(p.request);
  p.stand = Participant::Stand::Out;
  if (job.queued && job.waiting.empty()) leaveQueue(job);
}

void Group::leaveQueue(Job& job) {
  if (job.move && job.move->moved && !job.heldBack) {
    job.finishing = true;
  } else {
    dequeue(job);
  }
}

// What came to a device between its first acquire and the last join of its gang is of its claim.
void Group::enqueueWhenComplete(Step& s, Job& job) {
  if (job.waiting.empty() || !job.gathered()) return;
  job.finishing = false;
  if (job.queued) return;
  reclaim(s, job, true);
  if (job.complete()) enqueue(job, s.now);
}

void Group::enqueue(Job& job, Instant now) {
  job.since = now;
  for (const Participant* p : job.waiting) job.since = std::min(job.since, p->since);
  job.place =
      placeFor(config_, job.id, job.options.priority, job.waiting.front()->ticket, job.since);
  job.queued = true;
  job.cause = Cause::None;
  queue_.insert(job.place, job);
  listWaiter(job);
}

void Group::dequeue(Job& job) {
  queue_.erase(job.place);
  if (job.heldBack) {
    heldBack_.erase(&job);
  } else {
    unlistWaiter(job);
  }
  job.queued = job.heldBack = job.pinned = job.finishing = false;
  job.told = Cause::None;
  job.refusals = 0;
  touch(job);
}

void Group::listWaiter(Job& job) {
  for (DeviceState* d : job.on) {
    d->waiters.insert(job.place, job);
    contested_.insert(d);
  }
}

void Group::unlistWaiter(Job& job) {
  for (DeviceState* d : job.on) {
    d->waiters.erase(job.place);
    if (!d->waiters.empty()) continue;
    contested_.erase(d);
    noteIdle(*d);
  }
}

// From its first order on, a switch goes on before anybody with a better place is looked at.
void Group::pin(Job& job, bool on) {
  if (job.pinned == on || !job.queued) return;
  if (!job.heldBack) unlistWaiter(job);
  queue_.erase(job.place);
  job.pinned = on;
  job.place = placeFor(config_, job.id, job.options.priority, job.place.ticket, job.since);
  if (on) job.place.rank = Place::kPinned;
  queue_.insert(job.place, job);
  if (!job.heldBack) listWaiter(job);
}

// Whether a new waiter of the job would be granted in this very step.
bool Group::freeNow(Job& job, Instant now) const {
  if (job.queued || job.slice || !job.complete() || !others(job, job.on).empty()) return false;
  bool contested = std::any_of(job.on.begin(), job.on.end(),
                               [](const DeviceState* d) { return !d->waiters.empty(); });
  if (contested || obstacle(job, {}, now).kind != Obstacle::Kind::None) return false;
  bool locking = std::any_of(job.onNode.begin(), job.onNode.end(), [](const auto& n) {
    return n.second.quiescing || n.second.releasing || n.second.moves > 0;
  });
  return !locking && !job.moving() && !job.hasSaved();
}

}  // namespace ts
