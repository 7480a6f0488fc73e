// How orders end: what was read afterwards, and what a failure leads to.
#include <algorithm>
#include <utility>

#include "group.h"
#include "roster.h"

namespace ts {

void Group::orderFinished(Instant now, const Order& order, OperationId id, const Outcome& outcome,
                          Actions& out) {
  Step s{now, out};
  Job& job = *roster_.job(order.job);
  switch (order.kind) {
    case OrderKind::Prepare:
      prepareFinished(s, job, order, id, outcome);
      break;
    case OrderKind::Quiesce:
      quiesceFinished(s, job, order, outcome);
      break;
    case OrderKind::Release:
      releaseFinished(s, job, order, outcome);
      break;
    case OrderKind::Save:
      saveFinished(s, job, order, outcome);
      break;
    case OrderKind::Restore:
      restoreFinished(s, job, order, outcome);
      break;
    case OrderKind::Grant:
      grantFinished(s, job, order, outcome);
      break;
    case OrderKind::Kill:
      killFinished(s, job, order, outcome);
      break;
    case OrderKind::DropBooking:
    case OrderKind::EndSlice:
    case OrderKind::Discard:
      break;
  }
}

// "A call overruns its deadline: OVERDUE; never killed in mid-call; awaited in the background"
void Group::orderOverdue(Instant now, const Order& order, const std::string& detail, Actions& out) {
  Step s{now, out};
  Job& job = *roster_.job(order.job);
  auto member = job.members.find(order.member);
  if (order.kind == OrderKind::Save || order.kind == OrderKind::Restore) {
    if (member != job.members.end()) member->second.overdue = true;
    ++job.onNode[order.node].overdueMoves;
    job.cause = Cause::Overdue;
    job.detail = job.lateCalls();
  }
  bool locks = order.kind == OrderKind::Quiesce || order.kind == OrderKind::Release ||
               order.kind == OrderKind::Grant;
  if (locks) ++job.onNode[order.node].overdue;
  if (order.kind == OrderKind::Prepare) ++job.onNode[order.node].overduePrepares;
  if (order.kind == OrderKind::Quiesce) {
    Outcome late{.code = Outcome::Code::Failed, .cause = Cause::Overdue, .detail = detail};
    moveFailed(s, job, FaultKind::Quiesce, late);
  }
}

// "A refusal changes nothing; bookings dropped; see 'a waiter whose switch was refused'."
void Group::prepareFinished(Step& s, Job& job, const Order& order, OperationId id,
                            const Outcome& o) {
  OnNode& here = job.onNode[order.node];
  if (order.overdue) --here.overduePrepares;
  changed_ |= order.overdue;
  if (here.prepare != id || here.booking != OnNode::Booking::Asked) return;  // stale: was dropped
  if (o.ok()) {
    here.booking = OnNode::Booking::Held;
    return;
  }
  here.booking = OnNode::Booking::None;
  dropBookings(s, job);
  remember(job, o);
  Obstacle why{Obstacle::Kind::HoldBack, job.cause, {}, o.detail};
  job.parkAfter = backOff(s, job, ++job.refusals, !job.queued);
  if (!job.queued || job.heldBack) return;
  if (o.lasting) return refuseAll(s, job, why);
  holdBack(s, job, why);
}

void Group::quiesceFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  OnNode& here = job.onNode[order.node];
  here.quiescing = false;
  here.unlockAfter.reset();  // what is stopped anew is let go at once
  bool counted = order.overdue;
  if (counted) --here.overdue;
  learnAll(s, job, order, o, Residency::Quiet);
  if (counted) changed_ = true;
  if (!o.ok() && o.code != Outcome::Code::Gone && !counted)
    moveFailed(s, job, FaultKind::Quiesce, o);
}

void Group::releaseFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  OnNode& here = job.onNode[order.node];
  here.releasing = false;
  if (order.overdue) --here.overdue;
  learnAll(s, job, order, o, Residency::Resident);
  changed_ = true;
  if (o.ok() || o.code == Outcome::Code::Gone) return unlocked(here);
  remember(job, o);
  // "the answer is no and nothing is wrong": asked again, as often as it takes.
  if (o.code == Outcome::Code::Refused) {
    here.unlockAfter = backOff(s, job, ++job.refusals, true);
    return;
  }
  if (!triesAgain(s, job, here, o)) setFault(s, job, FaultKind::Grant, o.cause, o.detail);
}

// "save fails before the commit point: no further restore; what was restored of I is saved again
// and measured; what was saved of O is restored; O released: whole"
void Group::saveFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  bool gone = !moveEnded(s, job, order, o, Residency::Saved);
  changed_ = true;
  if (gone) return;
  Member& m = job.members.at(order.member);
  if (o.ok()) {
    if (!job.hasOn() && !job.moving())
      job.failures = 0;  // one that left makes up for none that did not
    return;
  }
  if (m.dead || o.code == Outcome::Code::Gone) return;
  // Saved after all, unless its bytes are still where others want theirs.
  if (m.fact.residency == Residency::Saved && !m.fact.unreleased) return;
  moveFailed(s, job, FaultKind::Save, o);
  undo(job);
}

// Who is only put back where it came from is saved again by the rescue of whom it makes room for.
void Group::undo(Job& job) {
  if (mayNotRun(job)) return;
  job.unsavable = true;
  if (!job.cameIn && (job.hasSaved() || job.moving())) setRescue(job, true);
}

void Group::restoreFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  bool gone = !moveEnded(s, job, order, o, Residency::Quiet);
  changed_ = true;
  if (gone) return;
  Member& m = job.members.at(order.member);
  if (o.ok()) {
    // What is put back after a failure has not succeeded; nor has a job of which one member came
    // back.
    if (!job.rescue && !job.hasSaved() && !job.moving()) job.failures = 0;
    return;
  }
  if (m.dead || !m.saved() || o.code == Outcome::Code::Gone) return;
  if (o.code == Outcome::Code::Failed) {
    moveFailed(s, job, FaultKind::Restore, o);
    return;
  }
  // Room that a save is still making may show later: once more at the commit point.
  if (job.move && !job.move->committed && !job.rescue) {
    m.early = true;
    return;
  }
  // "I stays saved, its acquire is refused with need, free and holders, the next waiter is tried"
  remember(job, o);
  backOff(s, job, ++job.refusals, true);
  dropCommitted(s, job);
  if (job.queued && !job.rescue && !isPassing(o))
    refuseAll(s, job, {Obstacle::Kind::Refuse, job.cause, {}, o.detail});
}

// "a node cannot complete a grant: completed on the others; that one cannot unlock: faulted(grant),
// devices kept until killed"
void Group::grantFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  OnNode& here = job.onNode[order.node];
  if (here.grants > 0) --here.grants;
  if (order.overdue) --here.overdue;
  changed_ |= order.overdue;
  learnAll(s, job, order, o, Residency::Resident);
  if (here.grants == 0) dropForgotten(s, job, order.node);
  if (o.ok()) return unlocked(here);
  remember(job, o);
  bool again = triesAgain(s, job, here, o);
  if (!again && isFailure(o)) setFault(s, job, FaultKind::Grant, o.cause, o.detail);
  bool over = !job.slice || job.slice->epoch != order.epoch;
  // What is still stopped after its slice is let go by a release.
  if (!again || over) return refuseGrant(s, job, order.requests, o);
  here.regrant = true;
  here.unanswered.insert(here.unanswered.end(), order.requests.begin(), order.requests.end());
  here.lastRefusal = o;
  regrants_.insert(&job);
}

void Group::unlocked(OnNode& here) {
  here.unlockFailures = 0;
  here.unlockAfter.reset();
}

// "retried with back-off, then faulted(grant)", counted at each node by itself: what others do
// makes up for nothing there. What met an order of an earlier master is given when that has ended.
bool Group::triesAgain(Step& s, Job& job, OnNode& here, const Outcome& o) {
  bool failed = isFailure(o);
  if (o.lasting || (!failed && !isPassing(o))) return false;
  if (failed && ++here.unlockFailures >= roster_.config.quiesceAttempts) return false;
  here.unlockAfter = backOff(s, job, failed ? here.unlockFailures : ++job.refusals, true);
  return true;
}

// A node that is up and answers with an exception may do so for ever: with a slice that holds
// devices for it nobody waits for that.
bool Group::isFailure(const Outcome& o) {
  return o.code == Outcome::Code::Failed || o.cause == Cause::NodeSuspect;
}

// The node had something else to do, or could not take in the order: it says nothing about the job.
bool Group::isPassing(const Outcome& o) {
  bool elsewhere = o.cause == Cause::Busy || o.cause == Cause::NodeSuspect;
  return o.code == Outcome::Code::Refused && elsewhere;
}

// Not answered by its node, also if the slice was ended meanwhile. Who gave up has no request any
// more.
void Group::refuseGrant(Step& s, Job& job, const std::vector<RequestId>& requests,
                        const Outcome& o) {
  for (auto& [id, p] : job.participants) {
    bool asked = std::count(requests.begin(), requests.end(), p.request) > 0;
    if (!asked || p.stand == Participant::Stand::Waiting) continue;
    s.out.push_back(Refuse{p.request, causeOf(o), job.id, o.need, o.free, o.detail});
    leaveSlice(s, p);
    roster_.requests.erase(std::exchange(p.request, RequestId{}));
  }
}

void Group::killFinished(Step& s, Job& job, const Order& order, const Outcome& o) {
  job.onNode[order.node].killing = false;
  if (!o.ok() && o.code != Outcome::Code::Gone) backOff(s, job, ++job.refusals, false);
}

// --- what the driver said
// --------------------------------------------------------------------------

// False when the member was cleared away meanwhile.
bool Group::moveEnded(Step& s, Job& job, const Order& order, const Outcome& o,
                      Residency otherwise) {
  if (Job* whose = roster_.job(order.forWhom); whose && whose->move) whose->move->bytes += o.bytes;
  OnNode& here = job.onNode[order.node];
  --here.moves;
  if (order.overdue) --here.overdueMoves;
  auto it = job.members.find(order.member);
  if (it == job.members.end()) return false;
  Member& m = it->second;
  unindex(job, m);
  m.moving.reset();
  m.overdue = false;
  index(job, m);
  bool read = std::any_of(o.members.begin(), o.members.end(),
                          [&](const MemberFact& f) { return f.member == order.member; });
  learnAll(s, job, order, o, std::nullopt);
  if (!read && o.ok()) set(job, m, otherwise);
  if (!read && o.code == Outcome::Code::Gone) set(job, m, m.fact.residency, true);
  if (m.dead && m.fact.residency == Residency::Saved) discard(s, job, m);
  touch(job);
  return true;
}

void Group::set(Job& job, Member& m, Residency residency, bool dead) {
  unindex(job, m);
  m.fact.residency = residency;
  m.dead |= dead;
  index(job, m);
  touch(job);
}

// Every outcome carries the residency read after the call; a node with nothing to say about a
// member of a job that it stopped or let go did so.
void Group::learnAll(Step& s, Job& job, const Order& order, const Outcome& o,
                     std::optional<Residency> otherwise) {
  std::set<MemberId> read;
  for (const MemberFact& fact : o.members) {
    learn(s, job, order.node, fact, o.detail);
    read.insert(fact.member);
  }
  if (!otherwise || !o.ok()) return;
  Residency from = *otherwise == Residency::Quiet ? Residency::Resident : Residency::Quiet;
  for (auto& [id, m] : job.members) {
    if (m.node == order.node && !read.count(id) && !m.moving && m.fact.residency == from) {
      set(job, m, *otherwise);
    }
  }
  touch(job);
}

// --- what a failure leads to
// -----------------------------------------------------------------------

Cause Group::causeOf(const Outcome& o) {
  return o.cause == Cause::None ? Cause::DriverError : o.cause;
}

void Group::remember(Job& job, const Outcome& o) {
  job.cause = causeOf(o);
  job.need = o.need;
  job.free = o.free;
  job.detail = o.detail;
}

// "retried with back-off, then faulted"
void Group::moveFailed(Step& s, Job& job, FaultKind kind, const Outcome& o) {
  remember(job, o);
  // "the answer is no and nothing is wrong": asked again, as often as it takes.
  if (o.code == Outcome::Code::Refused && !o.lasting) {
    backOff(s, job, ++job.refusals, true);
    return;
  }
  ++job.failures;
  bool forGood = o.lasting || job.failures >= roster_.config.quiesceAttempts;
  // Half of it is saved, and the rest must not run beside a holder: tried on, at its pace.
  bool goesOn = (kind == FaultKind::Quiesce && job.hasSaved()) || mayNotRun(job);
  if (!forGood || goesOn) backOff(s, job, job.failures, true);
  if (forGood) setFault(s, job, kind, job.cause, o.detail);
}

// Doubles from the first to the cap. `itself`: the job is left alone that long, not only asked
// again.
Instant Group::backOff(Step& s, Job& job, std::uint32_t attempt, bool itself) {
  Duration wait = roster_.config.retryFirst;
  for (std::uint32_t i = 1; i < attempt && wait < roster_.config.retryCap; ++i) wait *= 2;
  Instant at = s.now + std::min(wait, roster_.config.retryCap);
  if (itself) job.retryAt = at;
  if (!job.retryTimer || at < *job.retryTimer) arm(job, Timer::Kind::Retry, job.retryTimer, at);
  return at;
}

void Group::setFault(Step& s, Job& job, FaultKind kind, Cause cause, std::string detail) {
  bool worse = kind == FaultKind::Restore || kind == FaultKind::Grant;
  if (job.fault != FaultKind::None && !worse) return;
  job.fault = kind;
  job.faultCause = job.cause = cause == Cause::None ? Cause::DriverError : cause;
  job.faultDetail = job.detail = std::move(detail);
  job.faultSince = s.now;
  changed_ = true;
  Notice said{Notice::Kind::JobFaulted, id_, job.id, {}, job.cause, kind, job.detail};
  s.out.push_back(std::move(said));
  if (worse) refuseAll(s, job, {Obstacle::Kind::Refuse, Cause::JobFaulted, job.id, job.detail});
  if (worse) setRescue(job, false);
  // "restore of I fails for good: I faulted(restore), ended by policy; the group goes on"
  if (kind == FaultKind::Restore) endByPolicy(s, job, Cause::JobFaulted);
}

void Group::endByPolicy(Step& s, Job& job, Cause why) {
  if (job.options.onBroken == OnBroken::Kill) kill(s, job, why);
}

void Group::kill(Step& s, Job& job, Cause why) {
  if (!job.killed) {
    job.killed = true;
    job.killedFor = job.cause = why;
    job.detail = why == Cause::Broken ? job.lost : job.faultDetail;
    setRescue(job, false);
    refuseAll(s, job, {Obstacle::Kind::Refuse, why, job.id, job.detail});
  }
  std::set<NodeId> nodes;
  for (const auto& [id, p] : job.participants) nodes.insert(p.node);
  for (const auto& [id, m] : job.members) nodes.insert(m.node);
  for (NodeId node : nodes) killOn(s, job, node, why);
}

void Group::killOn(Step& s, Job& job, NodeId node, Cause why) {
  OnNode& here = job.onNode[node];
  if (here.killing || !roster_.up(node)) return;
  here.killing = true;
  give(s, OrderKind::Kill, Kill{{}, node, job.id, why});
}

void Group::breakJob(Step& s, Job& job, const std::string& lost) {
  if (std::exchange(job.broken, true)) return;
  job.lost = lost;
  job.brokenSince = s.now;
  broken_.insert(&job);
  notice(s, Notice::Kind::JobBroken, job, Cause::Broken, lost);
}

// "if others wait, it is ended after `broken_grace`"
void Group::watchBroken(Step& s) {
  for (Job* job : broken_) {
    bool due = inOthersWay(*job) && !job->killed && job->options.onBroken == OnBroken::Kill;
    if (due && !job->brokenTimer) {
      arm(*job, Timer::Kind::Broken, job->brokenTimer, s.now + config_.brokenGrace);
    }
    if (!due) disarm(*job, Timer::Kind::Broken, job->brokenTimer);
  }
}

bool Group::inOthersWay(const Job& job) const {
  if (!job.slice && !job.queued) return false;
  const auto& devices = job.slice ? job.slice->on : job.on;
  return std::any_of(devices.begin(), devices.end(),
                     [&](const DeviceState* d) { return d->waiters.frontBeside(job) != nullptr; });
}

}  // namespace ts
