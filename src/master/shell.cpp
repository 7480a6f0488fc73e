#include "master/shell.h"

#include <algorithm>
#include <iterator>

#include "master/facts.h"
#include "master/node_link.h"
#include "master/sentences.h"

namespace ts {
namespace {

// Groups on demand stay for the life of the master: names that somebody makes up must end
// somewhere.
constexpr std::size_t kMaxGroups = 20'000;

GroupConfig compiled(const GroupSection& section) {
  return {.policy = section.policy == "priority" ? Policy::Priority : Policy::Fifo,
          .ageing = section.ageing,
          .holdLimit = section.holdLimit,
          .gangWait = section.gangWait,
          .brokenGrace = section.brokenGrace,
          .quiesceDeadline = section.quiesceDeadline};
}

void sendRefusal(NodeLink& link, std::uint64_t request, const Refuse& refusal,
                 const std::string& holder) {
  auto call = link.daemon().refuseRequest(
      capnp::MessageSize{48 + refusal.detail.size() / sizeof(capnp::word), 0});
  call.setRequest(request);
  call.setCause(toWire(refusal.cause));
  if (!holder.empty()) call.setHolder(holder);
  call.setNeed(refusal.need);
  call.setFree(refusal.free);
  if (!refusal.detail.empty()) call.setDetail(refusal.detail);
  link.keep(call.send().ignoreResult());
}

void sendWhereabouts(NodeLink& link, const JobName& job, const Whereabouts& what) {
  auto call = link.daemon().spansRequest();
  toWire(job, call.initKey());
  auto list = call.initNodes(unsigned(what.nodes.size()));
  unsigned i = 0;
  for (const std::string& name : what.nodes) list.set(i++, name);
  call.setGathered(toWire(what.gathered));
  link.keep(call.send().ignoreResult());
}

}  // namespace

Shell::Shell(kj::Timer& timer, const MasterConfig& config, Directory& directory, EventLog& events,
             Meters& meters)
    : config_(config),
      directory_(directory),
      events_(events),
      meters_(meters),
      orders_(directory, {.ended =
                              [this](const NodeOrder& order, OperationId operation, Outcome outcome,
                                     Duration took) {
                                orderEnded(order, operation, std::move(outcome), took);
                              },
                          .overdue =
                              [this](OperationId operation, std::string detail) {
                                feed(OrderOverdue{operation, std::move(detail)});
                              }}),
      cluster_(ClusterConfig{}),
      alarm_(timer, [this] { wakeUp(); }) {}

void Shell::begin(Generation generation, bool recovering) {
  for (NodeRecord* node : directory_.nodes())
    if (node->link != nullptr) node->link->retire("this master begins a new generation");
  orders_.clear();
  meters_.begun();
  timeline_ = Timeline();
  pending_.clear();
  soon_.clear();
  directory_ = Directory();
  generation_ = generation;
  cluster_ = Cluster(ClusterConfig{.generation = generation.number,
                                   .recovering = recovering,
                                   .recoveryGrace = config_.recoveryGrace});
}

// The core. --------------------------------------------------------------------------------------

void Shell::feed(Event event) {
  if (stopped_) return;
  if (stepping_) {
    pending_.push_back(std::move(event));
    return;
  }
  hear();
  take({std::move(event)});
}

void Shell::feedSoon(Event event) {
  if (stopped_) return;
  soon_.push_back(std::move(event));
  if (soon_.size() > 1) return;
  hearing_ = kj::evalLast([this] { hear(); }).eagerlyEvaluate(nullptr);
}

void Shell::hear() {
  if (stepping_ || soon_.empty()) return;
  take(std::exchange(soon_, {}));
}

void Shell::take(std::vector<Event> events) {
  if (stopped_) return;
  stepping_ = true;
  KJ_DEFER(stepping_ = false);
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { stepAll(std::move(events)); })) {
    stopped_ = true;
    broken_.fulfiller->reject(kj::cp(*e));
    kj::throwFatalException(kj::mv(*e));
  }
  if (auto wake = cluster_.nextWake()) alarm_.noLaterThan(*wake);
}

void Shell::stepAll(std::vector<Event> events) {
  step(events);
  while (!pending_.empty()) {
    const Event next = std::move(pending_.front());
    pending_.pop_front();
    step({&next, 1});
  }
}

// Before anything is ordered that depends on it.
void Shell::tellNodes() {
  for (JobId id : directory_.takeUntold()) {
    if (auto* job = directory_.find(id)) tellNodes(*job);
  }
}

void Shell::tellNodes(JobRecord& job) {
  auto now = std::make_shared<const Whereabouts>(whereaboutsOf(job));
  bool plain = now->nodes.size() <= 1 && now->gathered == Gathering::Unknown;
  if (plain && job.whereaboutsTold.empty()) return;  // each node knows itself
  for (NodeId node : job.on) {
    auto* link = directory_.node(node).link;
    if (link == nullptr) continue;  // its next report is compared
    bool has = job.whereaboutsTold[node] && *job.whereaboutsTold[node] == *now;
    job.whereaboutsTold[node] = now;
    if (has) continue;
    link->whenOpen([link, name = job.name, now] { sendWhereabouts(*link, name, *now); });
  }
}

Whereabouts Shell::whereaboutsOf(const JobRecord& job) {
  Whereabouts now{directory_.nodesOf(job)};
  if (job.options.gang > 1)
    now.gathered = cluster_.gathered(job.id) ? Gathering::Yes : Gathering::No;
  return now;
}

void Shell::reported(JobRecord& job, NodeRecord& node, Whereabouts said) {
  job.whereaboutsTold[node.id] = std::make_shared<const Whereabouts>(std::move(said));
  directory_.tellNodes(job);
}

void Shell::step(std::span<const Event> events) {
  for (const Event& event : events) {
    events_.happened(event);
    timeline_.happened(event);
  }
  out_.clear();
  cluster_.step(now(), events, out_);
  for (const Action& action : out_) {
    auto* notice = std::get_if<Notice>(&action);
    if (notice == nullptr || notice->kind != Notice::Kind::GangGathered) continue;
    if (auto* job = directory_.find(notice->job)) directory_.tellNodes(*job);
  }
  if (directory_.hasUntold()) tellNodes();
  for (Action& action : out_) {
    meters_.ordered(action);
    events_.ordered(action);
    timeline_.ordered(action, now());
    std::visit([this](auto& a) { obey(a); }, action);
  }
}

void Shell::wakeUp() {
  auto wake = cluster_.nextWake();
  if (!wake) return;
  if (*wake > now()) return alarm_.noLaterThan(*wake);
  feed(TimePassed{});
}

// Actions. Orders go to orders_; these have no outcome. ------------------------------------------

void Shell::obey(Refuse& refusal) {
  auto* request = directory_.find(refusal.request);
  if (request == nullptr) return;  // its caller has gone
  NodeRecord& node = *request->node;
  std::uint64_t local = request->local;
  // A job that is refused for what it is itself has nobody in its way.
  std::string holder;
  auto* job = directory_.find(refusal.holder);
  if (job != nullptr && job != request->participant->job) holder = job->name.name;
  directory_.remove(*request);
  refusal.detail = withNames(directory_, refusal.detail);
  if (node.link == nullptr) return;  // it asks again when it returns
  node.link->whenOpen(
      [&link = *node.link, local, holder, refusal] { sendRefusal(link, local, refusal, holder); });
}

void Shell::obey(AskToYield& ask) {
  auto* job = directory_.find(ask.job);
  auto* link = directory_.node(ask.node).link;
  if (job == nullptr || link == nullptr) return;
  link->whenOpen([link, name = job->name, epoch = ask.epoch] {
    auto call = link->daemon().askToYieldRequest(capnp::MessageSize{48, 0});
    toWire(name, call.initKey());
    toWire(epoch, call.initEpoch());
    link->keep(call.send().ignoreResult());
  });
}

void Shell::obey(Grant& grant) {
  for (RequestId id : grant.requests)
    if (auto* request = directory_.find(id)) request->granting = true;
  orders_.give(std::move(grant));
}

void Shell::obey(Notice& notice) {  // the event log has said it
  if (notice.kind == Notice::Kind::JobBroken) {
    if (auto* job = directory_.find(notice.job)) job->broken = withNames(directory_, notice.detail);
  }
  if (notice.kind == Notice::Kind::MissedSlice) amiss_();
  if (notice.kind != Notice::Kind::JoinRefused) return;
  joinRefusal_ = std::move(notice);
  if (joinRefusal_->cause != Cause::DeviceOwned) return;
  joinRefusal_->detail += " of node " + directory_.node(joinRefusal_->node).name +
                          " belongs to group " + directory_.name(joinRefusal_->group);
}

void Shell::orderEnded(const NodeOrder& order, OperationId operation, Outcome outcome,
                       Duration took) {
  NodeRecord& node = directory_.node(nodeOf(order));
  meters_.ended(verbOf(order), outcome, took);
  events_.ended(verbOf(order), node.id, jobOf(order), operation, outcome, took);
  if (auto spans = timeline_.ended(order, outcome, now())) {
    meters_.timed(*spans);
    events_.timed(*spans);
  }
  // The node's sentence names processes only; a job may have several nodes.
  if (outcome.code == Outcome::Code::Failed && !outcome.detail.empty())
    outcome.detail += ", on node " + node.name;
  if (auto* job = directory_.find(jobOf(order))) adopt(directory_, node, *job, outcome.members);
  if (auto* grant = std::get_if<Grant>(&order); grant != nullptr && outcome.ok()) answer(*grant);
  feedSoon(OrderFinished{operation, std::move(outcome)});
}

void Shell::yielded(NodeRecord& node, std::uint64_t participant, const Epoch& epoch) {
  auto* record = directory_.findParticipant(node, participant);
  if (record != nullptr) feedSoon(Yielded{record->id, epoch});
}

void Shell::answer(const Grant& grant) {
  for (RequestId id : grant.requests)
    if (auto* request = directory_.find(id)) directory_.remove(*request);
}

// Nodes. -----------------------------------------------------------------------------------------

void Shell::returned(NodeRecord& node) {
  node.state = NodeState::Up;
  node.since = now();
}

void Shell::lost(NodeRecord& node) {
  node.state = NodeState::Suspect;
  node.since = now();
  feed(NodeSuspected{node.id});
  if (!stopped_) amiss_();
}

void Shell::died(NodeRecord& node) {
  node.state = NodeState::Dead;
  node.since = now();
  orders_.forget(node);
  feed(NodeDied{node.id});
  forgetAllOn(node);
}

// The core has, and what comes back with the node is condemned by what the node reports of it.
void Shell::forgetAllOn(NodeRecord& node) {
  while (!node.participants.empty()) directory_.remove(*node.participants.begin()->second);
  while (!node.members.empty()) directory_.remove(*node.members.begin()->second);
  while (!node.jobs.empty()) {
    JobRecord& job = *node.jobs.begin()->second;
    directory_.unplace(job, node);
    if (!job.on.empty()) continue;
    feed(JobEnded{job.id});
    directory_.remove(job);
  }
  tellNodes();
}

// Jobs and their processes. ----------------------------------------------------------------------

void Shell::refuseUnknown(NodeRecord& node, std::uint64_t localRequest) {
  sendRefusal(*node.link, localRequest,
              {.cause = Cause::UnknownParticipant,
               .detail = "the master does not know this participant; join again"},
              "");
}

void Shell::cancel(RequestRecord& request) {
  feed(AcquireCancelled{request.id});
  // With a grant on its way the node has given up what that will name: its outcome ends the record.
  if (!request.granting) directory_.remove(request);
}

void Shell::leave(ParticipantRecord& participant, bool died) {
  feed(ParticipantLeft{participant.id, died});
  directory_.remove(participant);
}

void Shell::undoJoin(ParticipantRecord& participant) {
  feed(ParticipantLeft{.participant = participant.id, .died = false, .undone = true});
  directory_.tellNodes(*participant.job);
  directory_.remove(participant);
}

void Shell::cleared(MemberRecord& member) {
  feed(MemberCleared{member.id});
  directory_.remove(member);
}

void Shell::endedOn(NodeRecord& node, JobRecord& job) {
  endProcesses(node, job);
  directory_.unplace(job, node);
  if (!job.on.empty()) return tellNodes();
  feed(JobEnded{job.id});
  directory_.remove(job);
}

// A node tells of each end by itself; what it has not told has no way to end but this.
void Shell::endProcesses(NodeRecord& node, JobRecord& job) {
  if (job.participants == 0 && job.members == 0) return;
  std::vector<ParticipantRecord*> participants;
  for (auto& [local, record] : node.participants)
    if (record->job == &job) participants.push_back(record);
  for (auto* participant : participants) leave(*participant, false);
  std::vector<MemberRecord*> members;
  for (auto& [local, record] : node.members)
    if (record->job == &job) members.push_back(record);
  for (auto* member : members) {
    feed(MemberDied{member->id});
    cleared(*member);
  }
}

// Groups. ----------------------------------------------------------------------------------------

const GroupSection& Shell::section(const std::string& group) const {
  auto it = config_.groups.find(group);
  return it == config_.groups.end() ? config_.defaults : it->second;
}

const GroupId* Shell::group(const std::string& name) {
  if (!knowsGroup(name)) return nullptr;
  if (directory_.findGroup(name) == nullptr) adoptGroup(name);
  return directory_.findGroup(name);
}

bool Shell::knowsGroup(const std::string& name) const {
  bool known = directory_.findGroup(name) != nullptr || config_.groups.count(name) != 0;
  return known || (config_.anyGroup && directory_.groups() < kMaxGroups);
}

GroupId Shell::adoptGroup(const std::string& name) {
  GroupId id = directory_.group(name);
  cluster_.configure(id, compiled(section(name)));
  return id;
}

void Shell::configureAgain() {
  for (std::size_t i = 0; i < directory_.groups(); ++i)
    cluster_.configure(GroupId(i), compiled(section(directory_.name(GroupId(i)))));
}

}  // namespace ts
