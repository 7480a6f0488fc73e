#include "group.h"

#include <algorithm>

#include "roster.h"

namespace ts {

Group::Group(GroupId id, GroupConfig config, Roster& roster)
    : id_(id), config_(config), roster_(roster) {}

// Places of those who wait already are kept: a change of policy reorders nobody behind their backs.
void Group::configure(const GroupConfig& config) {
  config_ = config;
}

void Group::take(Instant now, const Event& event, Actions& out) {
  Step s{now, out};
  std::visit([&](const auto& e) { on(s, e); }, event);
}

void Group::timerFired(Instant now, const Timer& timer, Actions& out) {
  Step s{now, out};
  Job& job = *roster_.job(timer.job);
  switch (timer.kind) {
    case Timer::Kind::Hold:
      job.holdTimer.reset();
      break;  // askHolders() looks at the clock
    case Timer::Kind::Gang:
      job.gangTimer.reset();
      standsStill(s, job);
      break;
    case Timer::Kind::Retry:
      retryDue(s, job);
      break;
    case Timer::Kind::Broken:
      job.brokenTimer.reset();
      if (inOthersWay(job)) endByPolicy(s, job, Cause::Broken);
      break;
    case Timer::Kind::Grace:
      break;
  }
}

void Group::retryDue(Step& s, Job& job) {
  job.retryTimer.reset();
  if (job.retryAt && s.now >= *job.retryAt) job.retryAt.reset();
  std::optional<Instant> next = job.retryAt;
  if (s.now < job.parkAfter) next = std::min(next.value_or(job.parkAfter), job.parkAfter);
  for (const auto& [node, here] : job.onNode) {
    if (here.backsOff(s.now)) next = std::min(next.value_or(*here.unlockAfter), *here.unlockAfter);
  }
  if (next) arm(job, Timer::Kind::Retry, job.retryTimer, *next);
  if (job.killed) kill(s, job, job.killedFor);
  for (NodeId node : job.named) {
    if (roster_.nodes[node].condemned.count(job.id)) endCondemned(s, job, node);
  }
  for (DeviceState* d : homeOf(job)) noteIdle(*d);
  changed_ = true;
}

OperationId Group::remember(Order order) {
  return roster_.orders.add(std::move(order));
}

// The participant's call ends with a no.
void Group::refuse(Step& s, Participant& p, Cause cause, JobId holder, std::string detail) {
  const Job& job = *p.job;
  bool memory = cause == Cause::NoDeviceMemory || cause == Cause::NoHostMemory;
  s.out.push_back(Refuse{p.request, cause, holder, memory ? job.need : 0, memory ? job.free : 0,
                         std::move(detail)});
  if (p.stand == Participant::Stand::Waiting) stopWaiting(p);
  p.request = {};  // answered: also if a grant of it is still open at a node that was away
}

void Group::notice(Step& s, Notice::Kind kind, const Job& job, Cause cause, std::string detail) {
  s.out.push_back(Notice{kind, id_, job.id, {}, cause, FaultKind::None, std::move(detail)});
}

void Group::arm(Job& job, Timer::Kind kind, std::optional<Instant>& slot, Instant at) {
  disarm(job, kind, slot);
  slot = at;
  roster_.timers.arm({at, kind, job.id});
}

void Group::disarm(Job& job, Timer::Kind kind, std::optional<Instant>& slot) {
  if (!slot) return;
  roster_.timers.disarm({*slot, kind, job.id});
  slot.reset();
}

}  // namespace ts
