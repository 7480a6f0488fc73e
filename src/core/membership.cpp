// Who is here, where their state lies, and what they claim.
#include <algorithm>
#include <cassert>

#include "describe.h"
#include "group.h"
#include "mention.h"
#include "roster.h"

namespace ts {

void Group::on(Step& s, const JobDeclared& e) {
  Job& job = roster_.jobs[e.job];
  bool isNew = job.group == nullptr;
  job.id = e.job;
  job.group = this;
  job.options = e.options;
  jobs_.insert(&job);
  job.hasGathered |= e.gathered;
  for (NodeId node : e.nodes) name(job, node);
  if (isNew) return;
  reclaim(s, job, false);
  enqueueWhenComplete(s, job);
}

void Group::on(Step& s, const JobEnded& e) {
  Job& job = *roster_.job(e.job);
  job.options.gang = 0;  // the end of a whole job breaks nobody
  while (!job.participants.empty()) {
    remove(s, job.participants.begin()->second, false, Cause::TargetGone);
  }
  if (job.slice) endSlice(s, job);
  dropBookings(s, job);
  if (job.queued) dequeue(job);
  setRescue(job, false);
  endMove(s, job);
  parking_.erase(&job);
  while (!job.members.empty()) removeMember(job, job.members.begin()->first);
  setClaim(job, {});
  disarm(job, Timer::Kind::Retry, job.retryTimer);
  disarm(job, Timer::Kind::Broken, job.brokenTimer);
  disarm(job, Timer::Kind::Gang, job.gangTimer);
  disarm(job, Timer::Kind::Hold, job.holdTimer);
  for (NodeId id : job.named) {
    Node& node = roster_.nodes[id];
    node.jobs.erase(job.id);
    node.condemned.erase(job.id);
  }
  unreported_ -= job.unreported;
  unsettled_.erase(&job);
  broken_.erase(&job);
  late_.erase(&job);
  jobs_.erase(&job);
  roster_.jobs.erase(job.id);
  changed_ = true;
}

void Group::on(Step& s, const ParticipantJoined& e) {
  Job& job = *roster_.job(e.job);
  Node& node = roster_.nodes[e.node];
  if (node.returning) node.condemned.insert(job.id);
  name(job, e.node);
  if (node.condemned.count(job.id)) return;  // "on return its slices are void"
  auto devices = roster_.devices.at(e.devices);
  if (const DeviceState* other = DeviceTable::foreign(devices, id_)) {
    // Whose device it is, in the group's place: the shell knows the name.
    s.out.push_back(Notice{Notice::Kind::JoinRefused, other->owner, job.id, other->id.node,
                           Cause::DeviceOwned, FaultKind::None,
                           "device " + std::to_string(other->id.index)});
    return;
  }
  auto [it, isNew] = job.participants.try_emplace(e.participant);
  Participant& p = it->second;
  if (isNew) {
    p.id = e.participant;
    p.job = &job;
    p.node = e.node;
    p.process = e.process;
    roster_.participants[p.id] = &p;
    roster_.processes[p.process].push_back(&p);
    gatherWhenAllAreHere(s, job);
  }
  p.devices = e.devices;
  job.claimKnown = false;
  p.reported = true;
  reclaim(s, job, false);
  if (job.slice && job.slice->recovered && node.state == Node::State::Reporting) joinSlice(p);
  enqueueWhenComplete(s, job);
}

void Group::on(Step& s, const ParticipantLeft& e) {
  Participant& p = *roster_.participant(e.participant);
  Job& job = *p.job;
  bool counted = p.counted;
  remove(s, p, e.died, e.died ? Cause::TargetGone : Cause::Cancelled);
  if (!e.undone || !counted) return;
  job.hasGathered = false;
  if (job.queued && !job.complete()) leaveQueue(job);  // until the gang is there again
}

// Who has left before the last has come is no longer of the gang: it may join again.
void Group::gatherWhenAllAreHere(Step& s, Job& job) {
  if (job.gathered() || job.participants.size() < job.options.gang) return;
  job.hasGathered = true;
  for (auto& [id, p] : job.participants) p.counted = true;
  notice(s, Notice::Kind::GangGathered, job);
}

void Group::remove(Step& s, Participant& p, bool died, Cause cause) {
  Job& job = *p.job;
  if (p.stand == Participant::Stand::Waiting) refuse(s, p, cause);
  leaveSlice(s, p);
  roster_.requests.erase(p.request);
  auto& siblings = roster_.processes[p.process];
  std::erase(siblings, &p);
  if (siblings.empty()) roster_.processes.erase(p.process);
  std::string lost = mention(p.id) + " died without leaving";
  roster_.participants.erase(p.id);
  job.participants.erase(p.id);
  job.claimKnown = false;
  // "A participant of a gang that dies without leaving makes the job broken"
  if (died && job.options.gang > 0 && !job.participants.empty()) breakJob(s, job, lost);
  reclaim(s, job, false);
}

void Group::name(Job& job, NodeId id) {
  if (!job.named.insert(id).second) return;
  Node& node = roster_.nodes[id];
  node.jobs[job.id] = &job;
  if (node.answered) return;
  ++unreported_;
  if (job.unreported++ > 0) return;
  for (DeviceState* d : job.on) ++d->unsafe;
}

void Group::nodeAnswered(Job& job) {
  --unreported_;
  if (--job.unreported > 0) return;
  for (DeviceState* d : job.on) madeSafe(*d);
  for (DeviceState* d : homeOf(job)) noteIdle(*d);
}

void Group::madeSafe(DeviceState& device) {
  if (--device.unsafe == 0) freed(device);
}

// --- members
// ---------------------------------------------------------------------------------------

void Group::on(Step& s, const MemberSeen& e) {
  Job& job = *roster_.job(e.job);
  learn(s, job, e.node, e.fact);
  changed_ = true;
}

void Group::learn(Step& s, Job& job, NodeId node, const MemberFact& fact, const std::string& why) {
  auto [it, isNew] = job.members.try_emplace(fact.member);
  Member& m = it->second;
  m.reported = true;
  if (m.dead) return;  // stale: a dead member's device is only ever cleared
  bool moved = isNew || m.fact.devices != fact.devices || m.fact.residency == Residency::Absent;
  bool counted = !isNew && m.inClaim();
  unindex(job, m);
  m.fact = fact;
  inherit(m);
  m.node = node;
  Node& where = roster_.nodes[node];
  if (where.returning) where.condemned.insert(job.id);
  m.condemned = where.condemned.count(job.id) > 0;
  m.at = roster_.devices.at(fact.devices);
  roster_.members[fact.member] = {&job, &m};
  index(job, m);
  name(job, node);
  if (moved && m.on()) tellOutside(s, job, m);
  if (m.unreleased() && !job.slice) undo(job);
  // Its acquire has not been answered yet, so the claim can still grow.
  bool same = !moved && counted == m.inClaim() && within(job.claim, fact.devices);
  if (job.queued && !job.slice && !same) reclaim(s, job, true);
  if (fact.residency == Residency::Faulted && job.fault == FaultKind::None) {
    setFault(s, job, FaultKind::Restore, Cause::DriverError,
             why.empty() ? "the driver calls a member faulted" : why);
  }
  touch(job);
}

// A node reports a member in mid-move whose order is of an earlier master, or lost: "generations
// fence new orders, never the end of old ones". Nobody counts on it before it has ended.
void Group::inherit(Member& m) {
  bool saving = m.fact.residency == Residency::Saving;
  bool between = saving || m.fact.residency == Residency::Restoring;
  if (between && !m.moving) {
    m.moving = saving ? OrderKind::Save : OrderKind::Restore;
    m.inherited = m.overdue = true;
  } else if (!between && m.inherited) {
    m.moving.reset();
    m.inherited = m.overdue = false;
  }
}

// "a member seen on a device outside it is reported (OUTSIDE)", and "never silently left beside a
// holder".
void Group::tellOutside(Step& s, Job& job, const Member& m) {
  if (m.fact.bytes == 0) return;  // it takes turns and has nothing there
  auto beside = std::find_if(m.at.begin(), m.at.end(),
                             [&](const DeviceState* d) { return d->holder && d->holder != &job; });
  if (within(job.claim, m.fact.devices) && beside == m.at.end()) return;
  std::string detail = mention(m.fact.member);
  for (const Device& d : m.fact.devices) detail += ", " + mention(d);
  notice(s, Notice::Kind::Outside, job, Cause::Outside, detail);
}

void Group::on(Step& s, const MemberDied& e) {
  auto [job, m] = roster_.members.at(e.member);
  unindex(*job, *m);
  m->dead = true;
  index(*job, *m);
  if (!m->moving && m->fact.residency == Residency::Saved) discard(s, *job, *m);
  touch(*job);
  changed_ = true;
}

void Group::discard(Step& s, Job& job, const Member& m) {
  give(s, OrderKind::Discard, Discard{{}, m.node, job.id, m.fact.member});
}

void Group::on(Step&, const MemberCleared& e) {
  MemberRef ref = roster_.members.at(e.member);
  removeMember(*ref.job, e.member);
  touch(*ref.job);
  changed_ = true;
}

void Group::removeMember(Job& job, MemberId id) {
  auto it = job.members.find(id);
  unindex(job, it->second);
  job.members.erase(it);
  roster_.members.erase(id);
}

// A member stands in the tables of its devices as present, or as saved and wanting back, or not at
// all.
void Group::index(Job& job, Member& m) {
  using Listed = Member::Listed;
  job.claimKnown = false;
  m.listed = m.on() ? Listed::Present : m.saved() ? Listed::Saved : Listed::Nowhere;
  m.lingers = m.unreleased();
  for (DeviceState* d : m.at) {
    if (m.listed == Listed::Present) d->present.add(job);
    if (m.lingers) d->lingering.add(job);
    if (m.listed == Listed::Saved) {
      auto& entry = d->saved[job.id];
      entry.first = &job;
      ++entry.second;
      noteIdle(*d);
    }
  }
}

void Group::unindex(Job& job, Member& m) {
  using Listed = Member::Listed;
  job.claimKnown = false;
  for (DeviceState* d : m.at) {
    if (m.listed == Listed::Present) {
      d->present.remove(job);
      freed(*d);
    }
    if (m.lingers) {
      d->lingering.remove(job);
      freed(*d);
    }
    if (m.listed == Listed::Saved && --d->saved[job.id].second == 0) d->saved.erase(job.id);
  }
  m.listed = Listed::Nowhere;
  m.lingers = false;
}

// Something has gone from it. Who waits for it, or wants to come back to it, may be of another
// group.
void Group::freed(DeviceState& device) {
  auto poke = [&](GroupId group) {
    if (group != id_) roster_.poked.insert(group);
  };
  if (device.claims > 0) poke(device.owner);
  for (auto& [id, entry] : device.saved) {
    entry.first->group->noteIdle(device);
    poke(entry.first->group->id());
  }
}

// --- claims
// ----------------------------------------------------------------------------------------

// "Use never narrows or silently widens a claim ... the device joins the claim at the job's next
// acquire"
void Group::reclaim(Step& s, Job& job, bool widen) {
  if (job.claimKnown) return;  // of a gang of N each acquire comes here
  job.claimKnown = widen;
  Devices all;
  for (const auto& [id, p] : job.participants) {
    all.insert(all.end(), p.devices.begin(), p.devices.end());
  }
  for (const auto& [id, m] : job.members) {
    if (!m.inClaim()) continue;
    for (DeviceState* d : m.at) {
      bool had = std::binary_search(job.claim.begin(), job.claim.end(), d->id);
      bool ours = d->claims == 0 || d->owner == id_;
      if (had || (widen && ours)) all.push_back(d->id);
      job.claimKnown &= ours;  // it may become ours
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all == job.claim) return;
  setClaim(job, std::move(all));
  if (job.queued && job.claim.empty()) refuseAll(s, job, {Obstacle::Kind::Refuse, Cause::NoClaim});
}

void Group::setClaim(Job& job, Devices devices) {
  bool listed = job.queued && !job.heldBack;
  if (listed) unlistWaiter(job);
  if (job.unreported > 0) {
    for (DeviceState* d : job.on) madeSafe(*d);
  }
  DeviceTable::unclaim(job.on);
  job.claim = std::move(devices);
  job.on = roster_.devices.at(job.claim);
  DeviceTable::claim(job.on, id_);
  if (job.unreported > 0) {
    for (DeviceState* d : job.on) ++d->unsafe;
  }
  if (listed) listWaiter(job);
}

// --- what needs attention
// --------------------------------------------------------------------------

void Group::touch(Job& job) {
  if (settled(job)) {
    unsettled_.erase(&job);
  } else {
    unsettled_.insert(&job);
  }
}

bool Group::settled(const Job& job) const {
  if (job.move || job.rescue || job.unsavable || job.cameIn) return false;
  for (const auto& [id, m] : job.members) {
    if (m.moving || m.quiet() || m.fact.residency == Residency::Quiescing) return false;
  }
  bool locking = std::any_of(job.onNode.begin(), job.onNode.end(), [](const auto& n) {
    return n.second.quiescing || n.second.releasing || n.second.booking != OnNode::Booking::None;
  });
  return !locking && job.whole();
}

}  // namespace ts
