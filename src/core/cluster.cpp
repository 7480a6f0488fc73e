#include "cluster.h"

#include <algorithm>
#include <set>
#include <span>

#include "describe.h"
#include "group.h"
#include "mention.h"
#include "roster.h"

namespace ts {

struct Cluster::State {
  Roster roster;

  // One step: what is due first, then the events, then what follows in the groups that they are
  // about, then in those that these touched from outside.
  void step(Instant now, std::span<const Event> events, Actions& out) {
    if (!roster.startedAt) start(now);
    while (auto timer = roster.timers.take(now)) fire(now, *timer, out);
    for (const Event& event : events) {
      std::visit([&](const auto& e) { route(now, e, out); }, event);
    }
    derive(now, out);
    for (GroupId id : std::exchange(roster.poked, {})) {
      if (Group* group = roster.group(id)) told(*group).reconsider();
    }
    derive(now, out);
  }

private:
  std::set<GroupId> told_;  // in this step

  Group& told(Group& group) {
    told_.insert(group.id());
    return group;
  }
  void derive(Instant now, Actions& out) {
    for (GroupId id : std::exchange(told_, {})) roster.group(id)->derive(now, out);
  }
  void start(Instant now) {
    roster.startedAt = now;
    // Places of this life come after those that earlier masters gave.
    roster.tickets = std::max(roster.tickets, std::uint64_t(roster.config.generation) << 40U);
    if (!roster.config.recovering) return;
    roster.timers.arm({now + roster.config.recoveryGrace, Timer::Kind::Grace, JobId{}});
  }
  void fire(Instant now, const Timer& timer, Actions& out) {
    if (timer.kind == Timer::Kind::Grace) {
      for (auto& [id, group] : roster.groups) told(*group).reconsider();
    } else if (Job* job = roster.job(timer.job)) {
      told(*job->group).timerFired(now, timer, out);
    }
  }

  // To the group of the job, participant, member or request that the event is about; about nobody
  // we know, it is stale.
  template <typename E>
  void toJob(Instant now, JobId id, const E& e, Actions& out) {
    if (Job* job = roster.job(id)) told(*job->group).take(now, e, out);
  }
  template <typename E>
  void toParticipant(Instant now, ParticipantId id, const E& e, Actions& out) {
    if (Participant* p = roster.participant(id)) told(*p->job->group).take(now, e, out);
  }
  template <typename E>
  void toMember(Instant now, MemberId id, const E& e, Actions& out) {
    auto it = roster.members.find(id);
    if (it != roster.members.end()) told(*it->second.job->group).take(now, e, out);
  }
  // To every group with a job that names the node.
  template <typename E>
  void toNode(Instant now, NodeId id, const E& e, Actions& out) {
    std::set<GroupId> groups;
    for (const auto& [jobId, job] : roster.nodes[id].jobs) groups.insert(job->group->id());
    for (GroupId group : groups) told(*roster.group(group)).take(now, e, out);
  }

  void route(Instant now, const NodeJoined& e, Actions& out) {
    Node& node = roster.nodes[e.node];
    node.returning |= node.state == Node::State::Dead;
    node.state = Node::State::Reporting;
    node.devices = e.devices;
    toNode(now, e.node, e, out);
  }
  void route(Instant now, const NodeReported& e, Actions& out) {
    Node& node = roster.nodes[e.node];
    if (node.state != Node::State::Reporting) return;  // stale: its connection was lost meanwhile
    node.state = Node::State::Up;
    node.returning = false;
    answered(node);
    toNode(now, e.node, e, out);
  }
  void route(Instant now, const NodeSuspected& e, Actions& out) {
    Node& node = roster.nodes[e.node];
    if (node.state == Node::State::Dead) return;
    node.state = Node::State::Suspect;
    toNode(now, e.node, e, out);
  }
  void route(Instant now, const NodeDied& e, Actions& out) {
    Node& node = roster.nodes[e.node];
    node.state = Node::State::Dead;
    node.unheard = !node.answered;
    node.condemned.clear();
    roster.orders.forget(e.node);
    answered(node);
    toNode(now, e.node, e, out);
  }
  void route(Instant now, const NodeDrained& e, Actions& out) {
    roster.nodes[e.node].drained = e.on;
    toNode(now, e.node, e, out);
  }
  // A report of this generation or a verdict: either is an answer.
  void answered(Node& node) {
    if (std::exchange(node.answered, true)) return;
    for (auto& [id, job] : node.jobs) job->group->nodeAnswered(*job);
  }

  void route(Instant now, const JobDeclared& e, Actions& out) {
    Group* group = roster.group(e.group);
    const Job* known = roster.job(e.job);
    if (!group) return refuseJob(e, Cause::UnknownGroup, out);
    if (known && known->group != group) return refuseJob(e, Cause::DeviceOwned, out);
    told(*group).take(now, e, out);
  }
  static void refuseJob(const JobDeclared& e, Cause cause, Actions& out) {
    std::string detail = mention(e.group) + (cause == Cause::UnknownGroup ? " is not configured"
                                                                          : " is not the job's");
    out.push_back(Notice{
        Notice::Kind::JoinRefused, e.group, e.job, {}, cause, FaultKind::None, std::move(detail)});
  }
  void route(Instant now, const JobEnded& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const ParticipantJoined& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const MemberSeen& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const JobEvicted& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const FaultCleared& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const ParticipantLeft& e, Actions& out) {
    toParticipant(now, e.participant, e, out);
  }
  void route(Instant now, const Yielded& e, Actions& out) {
    toParticipant(now, e.participant, e, out);
  }
  void route(Instant now, const SliceReported& e, Actions& out) {
    toParticipant(now, e.participant, e, out);
  }
  void route(Instant now, const GrantReported& e, Actions& out) { toJob(now, e.job, e, out); }
  void route(Instant now, const MemberDied& e, Actions& out) { toMember(now, e.member, e, out); }
  void route(Instant now, const MemberCleared& e, Actions& out) { toMember(now, e.member, e, out); }
  void route(Instant now, const AcquireRequested& e, Actions& out) {
    if (!roster.participant(e.participant)) {
      out.push_back(Refuse{e.request, Cause::UnknownParticipant});
    }
    toParticipant(now, e.participant, e, out);
  }
  void route(Instant now, const AcquireCancelled& e, Actions& out) {
    auto it = roster.requests.find(e.request);
    if (it != roster.requests.end()) told(*it->second->job->group).take(now, e, out);
  }
  void route(Instant now, const OrderFinished& e, Actions& out) {
    auto order = roster.orders.take(e.operation);
    if (!order) return;  // stale: its node was declared dead meanwhile
    if (Job* job = roster.job(order->job)) {
      told(*job->group).orderFinished(now, *order, e.operation, e.outcome, out);
    }
  }
  void route(Instant now, const OrderOverdue& e, Actions& out) {
    Order* order = roster.orders.find(e.operation);
    if (!order || std::exchange(order->overdue, true)) return;
    if (Job* job = roster.job(order->job))
      told(*job->group).orderOverdue(now, *order, e.detail, out);
  }
  void route(Instant, const TimePassed&, Actions&) {}
  void route(Instant now, const GroupPaused& e, Actions& out) {
    if (Group* group = roster.group(e.group)) told(*group).take(now, e, out);
  }
};

Cluster::Cluster(ClusterConfig config) : state_(std::make_unique<State>()) {
  state_->roster.config = config;
}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::configure(GroupId id, const GroupConfig& config) {
  auto& group = state_->roster.groups[id];
  if (group) return group->configure(config);
  group = std::make_unique<Group>(id, config, state_->roster);
}

void Cluster::step(Instant now, std::span<const Event> events, Actions& out) {
  state_->step(now, events, out);
}

std::optional<Instant> Cluster::nextWake() const {
  return state_->roster.timers.next();
}

std::optional<GroupView> Cluster::view(GroupId id) const {
  const Group* group = state_->roster.group(id);
  return group ? std::optional(group->view()) : std::nullopt;
}

std::optional<JobView> Cluster::view(JobId id) const {
  const Job* job = state_->roster.job(id);
  return job ? std::optional(job->group->view(*job)) : std::nullopt;
}

std::vector<GroupView> Cluster::groups() const {
  std::vector<GroupView> all;
  for (const auto& [id, group] : state_->roster.groups) all.push_back(group->view());
  return all;
}

std::vector<JobView> Cluster::jobs() const {
  std::vector<JobView> all;
  for (const auto& [id, group] : state_->roster.groups) group->addJobs(all);
  return all;
}

bool Cluster::gathered(JobId id) const {
  const Job* job = state_->roster.job(id);
  return job && job->gathered();
}

std::optional<JobId> Cluster::claimant(const Device& device) const {
  auto node = state_->roster.nodes.find(device.node);
  if (node == state_->roster.nodes.end()) return std::nullopt;
  for (const auto& [id, job] : node->second.jobs) {
    if (std::binary_search(job->claim.begin(), job->claim.end(), device)) return id;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Cluster::ticket(RequestId request) const {
  auto it = state_->roster.requests.find(request);
  if (it == state_->roster.requests.end()) return std::nullopt;
  const Participant& p = *it->second;
  return p.stand == Participant::Stand::Waiting ? std::optional(p.ticket) : std::nullopt;
}

}  // namespace ts
