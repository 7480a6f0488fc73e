// From acquire to yield: who waits, who is in a slice, when it ends.
#include <algorithm>
#include <map>
#include <utility>

#include "deadlock.h"
#include "group.h"
#include "roster.h"

namespace ts {
namespace {

// The nodes of some devices, each once, in order.
std::vector<NodeId> nodesOf(const Devices& devices) {
  std::vector<NodeId> nodes;
  for (const Device& d : devices) {
    if (nodes.empty() || nodes.back() != d.node) nodes.push_back(d.node);
  }
  return nodes;
}

Devices partOn(const Devices& devices, NodeId node) {
  Devices part;
  for (const Device& d : devices) {
    if (d.node == node) part.push_back(d);
  }
  return part;
}

bool inside(const Devices& part, const Devices& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

}  // namespace

// --- waiting ---------------------------------------------------------------------------------------

void Group::on(Step& s, const AcquireRequested& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  if (p.stand != Participant::Stand::Out) return askedAgain(s, p, e);
  p.request = e.request;
  p.since = s.now;
  if (job.killed || job.evicted) return refuse(s, p, job.evicted ? Cause::Evicted : job.cause);
  if (job.fault == FaultKind::Restore || job.fault == FaultKind::Grant) {
    return refuse(s, p, Cause::JobFaulted, job.id, job.detail);
  }
  reclaim(s, job, true);
  job.gathered |= job.everJoined >= job.options.gang || e.ticket != 0;  // it had a place once
  if (job.claim.empty() && job.gathered) return refuse(s, p, Cause::NoClaim);
  if (mayEnter(p, s.now)) return enter(s, p);
  p.ticket = e.ticket ? e.ticket : ++roster_.tickets;
  roster_.tickets = std::max(roster_.tickets, p.ticket);
  if (e.tryOnly && !freeNow(job, s.now)) {
    return refuse(s, p, paused_ ? Cause::Paused : Cause::Busy);
  }
  if (auto holder = closesCycle(roster_, p)) return refuse(s, p, Cause::Deadlock, *holder);
  wait(p, s.now);
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
  if (p.request == e.request) return;  // answered by a grant that is on its way
  s.out.push_back(Refuse{e.request, waits ? Cause::AlreadyWaiting : Cause::AlreadyEntered});
}

void Group::on(Step& s, const AcquireCancelled& e) {
  auto it = roster_.requests.find(e.request);
  Participant& p = *it->second;
  if (p.stand == Participant::Stand::Waiting) return stopWaiting(p);
  leaveSlice(s, p);  // its node gave it up before the grant arrived there
}

void Group::wait(Participant& p, Instant now) {
  Job& job = *p.job;
  p.stand = Participant::Stand::Waiting;
  roster_.requests[p.request] = &p;
  job.waiting.push_back(&p);
  job.finishing = false;
  if (!job.queued && job.complete()) enqueue(job, now);
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

// "I's last waiting call ends in mid-switch: before the first save O is released; after it the switch
// completes, I is parked ungranted, the next waiter is served"
void Group::stopWaiting(Participant& p) {
  Job& job = *p.job;
  std::erase(job.waiting, &p);
  roster_.requests.erase(p.request);
  p.stand = Participant::Stand::Out;
  if (!job.queued || !job.waiting.empty()) return;
  if (job.move && job.move->moved && !job.heldBack) {
    job.finishing = true;
  } else {
    dequeue(job);
  }
}

void Group::enqueue(Job& job, Instant now) {
  job.since = now;
  for (const Participant* p : job.waiting) job.since = std::min(job.since, p->since);
  job.place = placeFor(config_, job.id, job.options.priority, job.waiting.front()->ticket, job.since);
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
    return n.second.quiescing || n.second.releasing;
  });
  return !locking && !job.moving() && !job.hasSaved();
}

// --- slices ----------------------------------------------------------------------------------------

void Group::grant(Step& s, Job& job) {
  Epoch epoch{roster_.config.generation, ++roster_.epochs};
  Switch move = job.move.value_or(Switch{});
  std::map<NodeId, std::vector<RequestId>> requests;
  job.slice.emplace();
  Slice& slice = *job.slice;
  slice.epoch = epoch;
  slice.since = slice.lastMove = s.now;
  slice.devices = job.claim;
  slice.on = job.on;
  for (DeviceState* d : slice.on) d->holder = &job;
  if (job.options.gang > 0) {
    for (auto& [id, p] : job.participants) {
      p.owed = p.stand != Participant::Stand::Waiting;
      slice.owed += p.owed;
    }
  }
  for (Participant* p : job.waiting) {
    requests[p->node].push_back(p->request);
    p->stand = Participant::Stand::In;
    ++slice.in;
  }
  job.waiting.clear();
  // "an order to every node of the claim"
  for (NodeId node : nodesOf(slice.devices)) {
    giveGrant(s, job, node, std::move(requests[node]), s.now - job.since, move);
  }
  release(s, job);  // members on nodes that nobody claims run with the others
  if (move.moved) {
    ++switches_;
    notice(s, Notice::Kind::SwitchFinished, job);
  }
  dequeue(job);
  endMove(s, job);
  job.cause = Cause::None;
  job.blocker = {};
  armGang(job);
}

void Group::giveGrant(Step& s, Job& job, NodeId node, std::vector<RequestId> requests, Duration waited,
                      const Switch& move) {
  Order order;
  order.epoch = job.slice->epoch;
  order.requests = requests;
  ++job.onNode[node].grants;
  give(s, OrderKind::Grant,
       Grant{{}, node, job.id, job.slice->epoch, partOn(job.slice->devices, node),
             std::move(requests), waited, move.restored, move.bytes},
       std::move(order));
}

// Where a member was not let go, it is tried once more.
void Group::grantAgain(Step& s, Job& job) {
  std::set<NodeId> nodes;
  for (const auto& [id, m] : job.members) {
    if (m.quiet() && roster_.up(m.node) && !job.onNode[m.node].locking()) nodes.insert(m.node);
  }
  for (NodeId node : nodes) giveGrant(s, job, node, {}, Duration{0}, {});
}

// "The running slice answers only participants inside its granted claim." Without a gang they "enter at
// will"; with one "a participant's k-th acquire belongs to the job's k-th slice".
bool Group::mayEnter(const Participant& p, Instant now) const {
  const Job& job = *p.job;
  if (!job.slice || !inside(p.devices, job.slice->devices) || !roster_.up(p.node)) return false;
  if (p.done != job.slice->epoch) return true;
  return job.options.gang == 0 && !closed(job, now);
}

// "once a conflicting job has waited `hold_limit`, whoever has yielded waits for the next slice"
bool Group::closed(const Job& job, Instant now) const {
  return std::any_of(job.slice->on.begin(), job.slice->on.end(), [&](const DeviceState* d) {
    const Job* waiter = d->waiters.frontBeside(job);
    return waiter && now - waiter->since >= config_.holdLimit;
  });
}

void Group::enter(Step& s, Participant& p) {
  Job& job = *p.job;
  roster_.requests[p.request] = &p;
  p.stand = Participant::Stand::In;
  ++job.slice->in;
  if (p.owed) --job.slice->owed;
  p.owed = false;
  job.slice->lastMove = s.now;
  giveGrant(s, job, p.node, {p.request}, s.now - p.since, {});
  armGang(job);
}

void Group::on(Step& s, const Yielded& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  bool mine = p.stand == Participant::Stand::In && job.slice && job.slice->epoch == e.epoch;
  // "a stale epoch is ignored and counted"
  if (!mine) return notice(s, Notice::Kind::StaleDropped, job, Cause::Stale);
  leaveSlice(s, p);
}

void Group::leaveSlice(Step& s, Participant& p) {
  Job& job = *p.job;
  if (!job.slice) return;
  if (p.stand == Participant::Stand::In) {
    roster_.requests.erase(std::exchange(p.request, RequestId{}));
    p.stand = Participant::Stand::Out;
    p.done = job.slice->epoch;
    --job.slice->in;
  } else if (p.owed) {
    --job.slice->owed;
  } else {
    return;
  }
  p.owed = false;
  job.slice->lastMove = s.now;
  endIfOver(s, job);
}

void Group::endIfOver(Step& s, Job& job) {
  // Who is in a slice found after a restart is not known before all its nodes have told.
  bool open = job.slice->recovered && job.unreported > 0;
  if (job.slice->in == 0 && job.slice->owed == 0 && !open) return endSlice(s, job);
  armGang(job);
}

void Group::endSlice(Step& s, Job& job) {
  Slice slice = std::move(*job.slice);
  job.slice.reset();
  job.lastEpoch = slice.epoch;
  for (auto& [id, p] : job.participants) {
    if (p.stand == Participant::Stand::In) {
      roster_.requests.erase(p.request);
      p.stand = Participant::Stand::Out;
    }
    p.owed = false;
  }
  for (NodeId node : nodesOf(slice.devices)) {
    give(s, OrderKind::EndSlice, EndSlice{{}, node, job.id, slice.epoch});
  }
  for (DeviceState* d : slice.on) {
    if (d->holder == &job) d->holder = nullptr;
    noteIdle(*d);
  }
  disarm(job, Timer::Kind::Hold, job.holdTimer);
  disarm(job, Timer::Kind::Gang, job.gangTimer);
  notice(s, Notice::Kind::SliceEnded, job);
  if (job.queued) reclaim(s, job, true);
  touch(job);
  changed_ = true;
}

// --- slices that stand still -----------------------------------------------------------------------

void Group::armGang(Job& job) {
  disarm(job, Timer::Kind::Gang, job.gangTimer);
  if (!job.slice || (job.slice->owed == 0 && job.waiting.empty())) return;
  Instant at = (job.slice->owed > 0 ? job.slice->since : job.slice->lastMove) + config_.gangWait;
  arm(job, Timer::Kind::Gang, job.gangTimer, at);
}

void Group::standsStill(Step& s, Job& job) {
  if (!job.slice) return;
  if (job.slice->owed > 0) {
    // "or missed it by `gang_wait`"
    for (auto& [id, p] : job.participants) {
      if (!std::exchange(p.owed, false)) continue;
      notice(s, Notice::Kind::MissedSlice, job, Cause::None,
             "participant " + std::to_string(std::uint64_t(id)));
    }
    job.slice->owed = 0;
    return endIfOver(s, job);
  }
  // "one re-entry is let in and logged: the running rank may need the one that yielded"
  auto next = std::find_if(job.waiting.begin(), job.waiting.end(), [&](const Participant* p) {
    return inside(p->devices, job.slice->devices) && roster_.up(p->node);
  });
  if (next == job.waiting.end()) {
    job.slice->lastMove = s.now;
    return armGang(job);
  }
  Participant& p = **next;
  stopWaiting(p);
  notice(s, Notice::Kind::ReentryLetIn, job, Cause::None,
         "participant " + std::to_string(std::uint64_t(p.id)));
  enter(s, p);
}

// "`hold_limit`: when others wait, ask the holder to yield after this long"
void Group::askHolders(Step& s) {
  if (config_.holdLimit <= Duration::zero()) return;
  for (DeviceState* d : contested_) {
    Job* job = d->holder;
    if (!job || job->slice->asked || !d->waiters.frontBeside(*job)) continue;
    Instant due = job->slice->since + config_.holdLimit;
    if (s.now >= due) {
      askToYield(s, *job);
    } else if (!job->holdTimer) {
      arm(*job, Timer::Kind::Hold, job->holdTimer, due);
    }
  }
}

void Group::askToYield(Step& s, Job& job) {
  job.slice->asked = true;
  std::set<NodeId> nodes;
  for (const auto& [id, p] : job.participants) {
    if (p.stand == Participant::Stand::In) nodes.insert(p.node);
  }
  for (NodeId node : nodes) s.out.push_back(AskToYield{node, job.id, job.slice->epoch});
}

// --- slices re-declared after a restart of the master ----------------------------------------------

void Group::on(Step& s, const SliceReported& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  job.gathered = true;
  if (job.slice && job.slice->epoch == e.epoch) return joinReported(p);
  bool over = job.lastEpoch >= e.epoch || job.slice || outranked(job, e.epoch);
  if (over) {  // stale: fenced off by the epoch
    give(s, OrderKind::EndSlice, EndSlice{{}, p.node, job.id, e.epoch});
    return notice(s, Notice::Kind::StaleDropped, job, Cause::Stale);
  }
  for (DeviceState* d : job.on) {
    if (d->holder) endSlice(s, *d->holder);
  }
  job.slice.emplace();
  job.slice->epoch = e.epoch;
  job.slice->since = job.slice->lastMove = s.now;
  job.slice->recovered = true;
  for (auto& [id, other] : job.participants) joinSlice(other);
  if (!job.waiting.empty()) late_.insert(&job);
  joinReported(p);
}

// Two jobs say that they hold the same device: the later grant is true, the other's node was cut off.
bool Group::outranked(const Job& job, Epoch epoch) const {
  return std::any_of(job.on.begin(), job.on.end(), [&](const DeviceState* d) {
    return d->holder && d->holder->slice->epoch > epoch;
  });
}

// Its devices belong to the slice that its job was found in. Whether it has yielded it already nobody
// knows any more: it is taken to have, and let in again if the slice stands still for that.
void Group::joinSlice(Participant& p) {
  Slice& slice = *p.job->slice;
  if (p.stand != Participant::Stand::In) p.done = slice.epoch;
  for (Device id : p.devices) {
    DeviceState& d = roster_.devices.at(id);
    if (d.holder) continue;
    d.holder = p.job;
    slice.on.push_back(&d);
    slice.devices.insert(std::upper_bound(slice.devices.begin(), slice.devices.end(), id), id);
  }
}

void Group::joinReported(Participant& p) {
  p.standReported = true;
  if (p.stand == Participant::Stand::In) return;
  if (p.stand == Participant::Stand::Waiting) stopWaiting(p);
  if (p.owed) --p.job->slice->owed;
  p.owed = false;
  p.stand = Participant::Stand::In;
  p.request = {};
  ++p.job->slice->in;
}

}  // namespace ts
