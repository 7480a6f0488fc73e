// Nodes that come, report, vanish and die; and what operators do.
#include <algorithm>

#include "group.h"
#include "mention.h"
#include "roster.h"

namespace ts {

// A report begins: what it does not name again is gone. Bookings are only in the memory of a
// daemon, and this may be a new one: nothing is saved on one before it has been asked for again.
void Group::on(Step& s, const NodeJoined& e) {
  for (auto& [jobId, job] : roster_.nodes[e.node].jobs) {
    if (job->group != this) continue;
    if (job->onNode.count(e.node)) dropBooking(s, *job, e.node);
    for (auto& [id, m] : job->members) m.reported &= m.node != e.node;
    for (auto& [id, p] : job->participants) {
      if (p.node == e.node) p.reported = p.standReported = false;
    }
  }
}

void Group::on(Step& s, const NodeReported& e) {
  std::vector<Job*> here;
  for (auto& [id, job] : roster_.nodes[e.node].jobs) {
    if (job->group == this) here.push_back(job);
  }
  for (Job* job : here) {
    dropUnreported(s, *job, e.node);
    if (job->killed) killOn(s, *job, e.node, job->killedFor);
    if (job->slice) endIfOver(s, *job);
  }
  for (JobId id : roster_.nodes[e.node].condemned) {
    Job* job = roster_.job(id);
    if (job && job->group == this) endCondemned(s, *job, e.node);
  }
  for (Device d : roster_.nodes[e.node].devices) noteIdle(roster_.devices.at(d));
  changed_ = true;
}

void Group::dropUnreported(Step& s, Job& job, NodeId node) {
  std::vector<MemberId> lost;
  for (const auto& [id, m] : job.members) {
    if (m.node == node && !m.reported) lost.push_back(id);
  }
  for (MemberId id : lost) removeMember(job, id);
  std::vector<Participant*> all;
  for (auto& [id, p] : job.participants) {
    if (p.node == node) all.push_back(&p);
  }
  for (Participant* p : all) {
    if (!p->reported) {
      remove(s, *p, true, Cause::TargetGone);
    } else if (!p->standReported) {
      dropStand(s, *p);
    }
  }
  touch(job);
}

// Its node knows it, but neither as waiting nor as in the slice: the call is over.
void Group::dropStand(Step& s, Participant& p) {
  if (p.stand == Participant::Stand::Waiting) return refuse(s, p, Cause::Cancelled);
  if (p.job->onNode[p.node].grants == 0) leaveSlice(s, p);
}

// Whom the grant named by a call that its node had forgotten is not in the slice: nobody would
// yield.
void Group::dropForgotten(Step& s, Job& job, NodeId node) {
  std::vector<Participant*> all;
  for (auto& [id, p] : job.participants) {
    bool forgotten = p.reported && !p.standReported && p.stand == Participant::Stand::In;
    if (p.node == node && forgotten) all.push_back(&p);
  }
  for (Participant* p : all) leaveSlice(s, *p);
}

// "on return its slices are void, its members quiesced, then killed or cleared"
void Group::endCondemned(Step& s, Job& job, NodeId id) {
  OnNode& here = job.onNode[id];
  bool runs = std::any_of(job.members.begin(), job.members.end(), [&](const auto& m) {
    bool lives = m.second.node == id && !m.second.dead;
    return lives && m.second.fact.residency == Residency::Resident;
  });
  if (runs && !here.occupied() && roster_.up(id)) {
    here.quiescing = true;
    give(s, OrderKind::Quiesce, Quiesce{{}, id, job.id, config_.quiesceDeadline});
  }
  killOn(s, job, id, Cause::NodeDead);
}

// "suspect: nothing is granted on its devices, nothing is lost"
void Group::on(Step&, const NodeSuspected&) {
  changed_ = true;
}

// Its participants and members are out of the game until it returns, and are not welcome then.
void Group::on(Step& s, const NodeDied& e) {
  std::vector<Job*> here;
  for (auto& [id, job] : roster_.nodes[e.node].jobs) {
    if (job->group == this) here.push_back(job);
  }
  for (Job* job : here) leaveNode(s, *job, e.node);
  changed_ = true;
}

void Group::leaveNode(Step& s, Job& job, NodeId node) {
  std::vector<MemberId> members;
  for (const auto& [id, m] : job.members) {
    if (m.node == node) members.push_back(id);
  }
  std::vector<Participant*> participants;
  for (auto& [id, p] : job.participants) {
    if (p.node == node) participants.push_back(&p);
  }
  for (MemberId id : members) removeMember(job, id);
  for (Participant* p : participants) remove(s, *p, false, Cause::NodeDead);
  job.onNode.erase(node);
  if (job.slice) endIfOver(s, job);
  // "survivors of a spanning job are broken"
  bool lost = !members.empty() || !participants.empty() || roster_.nodes[node].unheard;
  if (lost && (!job.participants.empty() || !job.members.empty()))
    breakJob(s, job, mention(node) + " is dead");
  touch(job);
}

void Group::on(Step&, const NodeDrained&) {
  changed_ = true;
}

void Group::on(Step&, const GroupPaused& e) {
  paused_ = e.on;
  changed_ = true;
}

void Group::on(Step& s, const JobEvicted& e) {
  Job& job = *roster_.job(e.job);
  job.evicted = true;
  if (job.slice) endSlice(s, job);
  refuseAll(s, job, {Obstacle::Kind::Refuse, Cause::Evicted, job.id});
  if (e.kill) kill(s, job, Cause::Evicted);
  changed_ = true;
}

void Group::on(Step& s, const FaultCleared& e) {
  Job& job = *roster_.job(e.job);
  job.fault = FaultKind::None;
  job.cause = Cause::None;
  job.detail.clear();
  job.failures = 0;
  job.retryAt.reset();
  for (auto& [node, here] : job.onNode) unlocked(here);
  for (DeviceState* d : homeOf(job)) noteIdle(*d);
  unsettled_.insert(&job);
  changed_ = true;
  if (job.slice) grantAgain(s, job);
}

}  // namespace ts
