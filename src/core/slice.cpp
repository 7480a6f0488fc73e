// From grant to yield: who is in a slice, when it ends.
#include <algorithm>
#include <map>
#include <utility>

#include "group.h"
#include "mention.h"
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

}  // namespace

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
  if (move.prepared) finishSwitch(s, job);
  dequeue(job);
  endMove(s, job);
  job.cause = Cause::None;
  job.blocker = {};
  armGang(job);
}

void Group::giveGrant(Step& s, Job& job, NodeId node, std::vector<RequestId> requests,
                      Duration waited, const Switch& move) {
  Order order;
  order.epoch = job.slice->epoch;
  order.requests = requests;
  OnNode& here = job.onNode[node];
  ++here.grants;
  // The node drops with its grant what it holds for the job: no order for that alone.
  if (here.booking == OnNode::Booking::Held) here.booking = OnNode::Booking::None;
  give(s, OrderKind::Grant,
       Grant{{},
             node,
             job.id,
             job.slice->epoch,
             partOn(job.slice->devices, node),
             std::move(requests),
             waited,
             move.restored,
             move.bytes},
       std::move(order));
}

// Where a member was not let go, it is tried once more.
void Group::grantAgain(Step& s, Job& job) {
  std::set<NodeId> nodes;
  for (const auto& [id, m] : job.members) {
    if (m.quiet() && roster_.up(m.node) && !job.onNode[m.node].occupied()) nodes.insert(m.node);
  }
  for (NodeId node : nodes) giveGrant(s, job, node, {}, Duration{0}, {});
}

// Grants that failed and may succeed: their callers still wait for an answer.
void Group::grantRest(Step& s) {
  std::vector<Job*> all(regrants_.begin(), regrants_.end());
  for (Job* job : all) {
    bool left = false;
    for (auto& [node, here] : job->onNode) {
      if (!here.regrant) continue;
      bool may = job->slice && roster_.up(node) && !here.occupied() && !here.backsOff(s.now);
      left |= !may;
      if (may) giveGrantAgain(s, *job, node);
    }
    if (!job->slice || !left) regrants_.erase(job);
  }
}

void Group::giveGrantAgain(Step& s, Job& job, NodeId node) {
  OnNode& here = job.onNode[node];
  here.regrant = false;
  std::vector<RequestId> requests;
  Instant since = s.now;
  for (RequestId request : std::exchange(here.unanswered, {})) {
    auto it = roster_.requests.find(request);
    bool inside = it != roster_.requests.end() && it->second->stand == Participant::Stand::In;
    if (!inside || it->second->request != request) continue;  // given up meanwhile
    requests.push_back(request);
    since = std::min(since, it->second->since);
  }
  giveGrant(s, job, node, std::move(requests), s.now - since, {});
}

// The slice ends, and with it what was still to be tried.
void Group::refuseUnanswered(Step& s, Job& job) {
  Outcome evicted{.code = Outcome::Code::Refused, .cause = Cause::Evicted};
  for (auto& [node, here] : job.onNode) {
    if (!std::exchange(here.regrant, false)) continue;
    Outcome why = std::exchange(here.lastRefusal, {});
    refuseGrant(s, job, std::exchange(here.unanswered, {}), job.evicted ? evicted : why);
  }
  regrants_.erase(&job);
}

// "The running slice answers only participants inside its granted claim." Without a gang they
// "enter at will"; with one "a participant's k-th acquire belongs to the job's k-th slice".
bool Group::mayEnter(const Participant& p, Instant now) const {
  const Job& job = *p.job;
  if (!job.slice || !within(job.slice->devices, p.devices) || !roster_.up(p.node)) return false;
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
      // Its grant may be on its way still: until that has ended it can be given up.
      if (job.onNode[p.node].grants == 0) roster_.requests.erase(p.request);
      p.stand = Participant::Stand::Out;
    }
    p.owed = false;
  }
  refuseUnanswered(s, job);
  for (NodeId node : nodesOf(slice.devices)) {
    give(s, OrderKind::EndSlice, EndSlice{{}, node, job.id, slice.epoch});
  }
  for (DeviceState* d : slice.on) {
    if (d->holder == &job) d->holder = nullptr;
    freed(*d);
  }
  disarm(job, Timer::Kind::Hold, job.holdTimer);
  disarm(job, Timer::Kind::Gang, job.gangTimer);
  notice(s, Notice::Kind::SliceEnded, job);
  if (job.queued) reclaim(s, job, true);
  enqueueWhenComplete(s, job);
  touch(job);
  changed_ = true;
}

// --- slices that stand still
// -----------------------------------------------------------------------

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
      notice(s, Notice::Kind::MissedSlice, job, Cause::None, mention(id));
    }
    job.slice->owed = 0;
    return endIfOver(s, job);
  }
  // "one re-entry is let in and logged: the running rank may need the one that yielded"
  auto next = std::find_if(job.waiting.begin(), job.waiting.end(), [&](const Participant* p) {
    return within(job.slice->devices, p->devices) && roster_.up(p->node);
  });
  if (next == job.waiting.end()) {
    job.slice->lastMove = s.now;
    return armGang(job);
  }
  Participant& p = **next;
  stopWaiting(p);
  notice(s, Notice::Kind::ReentryLetIn, job, Cause::None, mention(p.id));
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

// --- slices re-declared after a restart of the master
// ----------------------------------------------

void Group::on(Step& s, const SliceReported& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  if (findSlice(s, job, p.node, e.epoch, job.on)) joinReported(p);
}

void Group::on(Step& s, const GrantReported& e) {
  Job& job = *roster_.job(e.job);
  Node& node = roster_.nodes[e.node];
  auto devices = roster_.devices.at(e.devices);
  // "on return its slices are void"
  bool isVoid =
      node.returning || node.condemned.count(job.id) || DeviceTable::foreign(devices, id_);
  if (isVoid) return give(s, OrderKind::EndSlice, EndSlice{{}, e.node, job.id, e.epoch}), void();
  if (findSlice(s, job, e.node, e.epoch, devices) && job.slice->recovered)
    addToSlice(job, e.devices);
}

// The job's slice of that epoch, as a node re-declares it: known, or from now on. False: it is
// over.
bool Group::findSlice(Step& s, Job& job, NodeId node, Epoch epoch,
                      const std::vector<DeviceState*>& on) {
  if (job.slice && job.slice->epoch == epoch) return true;
  bool over = job.lastEpoch >= epoch || job.slice || outranked(on, epoch);
  if (over) {  // stale: fenced off by the epoch
    give(s, OrderKind::EndSlice, EndSlice{{}, node, job.id, epoch});
    notice(s, Notice::Kind::StaleDropped, job, Cause::Stale);
    return false;
  }
  for (DeviceState* d : on) {
    if (d->holder) endSlice(s, *d->holder);
  }
  job.slice.emplace();
  job.slice->epoch = epoch;
  job.slice->since = job.slice->lastMove = s.now;
  job.slice->recovered = true;
  if (!job.gathered()) notice(s, Notice::Kind::GangGathered, job);
  job.hasGathered = true;
  for (auto& [id, other] : job.participants) joinSlice(other);
  if (!job.waiting.empty()) late_.insert(&job);
  return true;
}

// Two jobs say that they hold the same device: the later grant is true, the other's node was cut
// off.
bool Group::outranked(const std::vector<DeviceState*>& on, Epoch epoch) {
  return std::any_of(on.begin(), on.end(), [&](const DeviceState* d) {
    return d->holder && d->holder->slice->epoch > epoch;
  });
}

// Its devices belong to the slice that its job was found in. Whether it has yielded it already
// nobody knows any more: it is taken to have, and let in again if the slice stands still for that.
void Group::joinSlice(Participant& p) {
  if (p.stand != Participant::Stand::In) p.done = p.job->slice->epoch;
  addToSlice(*p.job, p.devices);
}

void Group::addToSlice(Job& job, const Devices& devices) {
  Slice& slice = *job.slice;
  for (Device id : devices) {
    DeviceState& d = roster_.devices.at(id);
    if (d.holder) continue;
    d.holder = &job;
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
