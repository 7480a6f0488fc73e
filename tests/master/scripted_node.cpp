#include "master/scripted_node.h"

#include <algorithm>

namespace ts::test {

// The capability that the master orders through. ------------------------------------------------

class ScriptedDaemon final : public wire::NodeDaemon::Server {
public:
  explicit ScriptedDaemon(ScriptedNode& node) : node_(node) {}

  kj::Promise<void> prepare(PrepareContext c) override { return simply("prepare", c); }
  kj::Promise<void> dropBooking(DropBookingContext c) override { return simply("drop-booking", c); }
  kj::Promise<void> endSlice(EndSliceContext c) override {
    JobName job = fromWire(c.getParams().getOrder().getKey());
    return answer("end-slice", c, [this, job] { node_.jobs_[job].granted = false; });
  }
  kj::Promise<void> discard(DiscardContext c) override { return simply("discard", c); }
  kj::Promise<void> kill(KillContext c) override { return simply("kill", c); }
  kj::Promise<void> quiesce(QuiesceContext c) override {
    return move("quiesce", c, Residency::Quiet);
  }
  kj::Promise<void> release(ReleaseContext c) override {
    return move("release", c, Residency::Resident);
  }
  kj::Promise<void> save(SaveContext c) override { return move("save", c, Residency::Saved); }
  kj::Promise<void> restore(RestoreContext c) override {
    return move("restore", c, Residency::Quiet);
  }

  kj::Promise<void> grant(GrantContext c) override {
    auto params = c.getParams();
    JobName job = fromWire(params.getOrder().getKey());
    Epoch epoch = fromWire(params.getEpoch());
    std::vector<std::uint64_t> requests;
    for (std::uint64_t request : params.getRequests()) requests.push_back(request);
    return answer("grant", c, [this, job, epoch, requests] {
      node_.setResidency(job, Residency::Resident);
      node_.granted(job, epoch, requests);
    });
  }
  kj::Promise<void> refuse(RefuseContext c) override {
    auto p = c.getParams();
    node_.refusals.push_back(
        {p.getRequest(), causeFromWire(p.getCause()), text(p.getHolder()), text(p.getDetail())});
    for (auto& [id, participant] : node_.participants_)
      if (participant.request == p.getRequest()) participant.waiting = false;
    return kj::READY_NOW;
  }
  kj::Promise<void> askToYield(AskToYieldContext c) override {
    node_.asked.push_back(text(c.getParams().getKey().getName()));
    return kj::READY_NOW;
  }
  kj::Promise<void> spans(SpansContext c) override {
    auto& nodes = node_.spans[text(c.getParams().getKey().getName())];
    nodes.clear();
    for (auto name : c.getParams().getNodes()) nodes.push_back(text(name));
    node_.gathered[text(c.getParams().getKey().getName())] = c.getParams().getGathered();
    ++node_.spansTold;
    return kj::READY_NOW;
  }
  kj::Promise<void> heartbeat(HeartbeatContext) override {
    if (node_.silent) return kj::NEVER_DONE;
    ++node_.heartbeats;
    return kj::READY_NOW;
  }

private:
  template <class Context>
  kj::Promise<void> simply(const char* verb, Context context) {
    return answer(verb, context, [] {});
  }
  template <class Context>
  kj::Promise<void> move(const char* verb, Context context, Residency residency) {
    JobName job = fromWire(context.getParams().getOrder().getKey());
    return answer(verb, context, [this, job, residency] { node_.setResidency(job, residency); });
  }
  template <class Context, class Effect>
  kj::Promise<void> answer(std::string verb, Context context, Effect effect) {
    auto order = context.getParams().getOrder();
    JobName job = fromWire(order.getKey());
    Outcome outcome = node_.obey(verb, job, OperationId{order.getOperation()});
    if (outcome.ok()) effect();
    outcome.members = node_.facts(job).members;
    return node_.whenAnswerable(verb).then(
        [context, outcome]() mutable { toWire(outcome, context.getResults().initOutcome()); });
  }

  ScriptedNode& node_;
};

Outcome ScriptedNode::obey(const std::string& verb, const JobName& job, OperationId operation) {
  orders.push_back(verb + " " + job.name);
  operations.push_back(operation);
  if (auto& exceptions = thrown[verb]; !exceptions.empty()) {
    auto type = exceptions.front();
    exceptions.pop_front();
    kj::throwFatalException(sentence("no room for another call", type));
  }
  auto& scripted = script[verb];
  if (scripted.empty()) return {};
  Outcome outcome = scripted.front();
  scripted.pop_front();
  return outcome;
}

kj::Promise<void> ScriptedNode::whenAnswerable(const std::string& verb) {
  if (verb != held) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  heldAnswers_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void ScriptedNode::answerHeld() {
  held.clear();
  for (auto& fulfiller : heldAnswers_) fulfiller->fulfill();
  heldAnswers_.clear();
}

void ScriptedNode::granted(const JobName& job, Epoch epoch,
                           const std::vector<std::uint64_t>& requests) {
  jobs_[job].granted = true;
  jobs_[job].epoch = epoch;
  for (auto& [id, p] : participants_) {
    if (p.job != job || !p.waiting) continue;
    if (std::ranges::find(requests, p.request) == requests.end()) continue;
    p.waiting = false;
    p.entered = true;
    p.epoch = epoch;
  }
}

void ScriptedNode::setResidency(const JobName& job, Residency residency) {
  for (auto& [id, member] : members_)
    if (member.job == job) member.fact.residency = residency;
}

Outcome ScriptedNode::facts(const JobName& job) const {
  Outcome outcome;
  for (const auto& [id, member] : members_)
    if (member.job == job) outcome.members.push_back(member.fact);
  return outcome;
}

std::size_t ScriptedNode::ordered(const std::string& what) const {
  return std::size_t(std::ranges::count(orders, what));
}

// Coming and going. ------------------------------------------------------------------------------

kj::Promise<NodeEntry> ScriptedNode::entering(const std::string& address) {
  auto stream = loop_.address(address)->connect().wait(loop_.scope);
  link_ = kj::heap<Link>(kj::mv(stream), Link::Side::Caller);
  auto master = KJ_ASSERT_NONNULL(link_)->peer<wire::Master>();
  return greet(kj::mv(master), *auth_, runHere(), 0).then([this](Greeted greeted) {
    NodeHello hello{.name = name_,
                    .instance = instance,
                    .highest = generation,
                    .daemon = kj::heap<ScriptedDaemon>(*this),
                    .report = [this](wire::NodeReport::Builder out) { report(out); }};
    return enterNode(kj::mv(greeted), kj::mv(hello), *auth_, runHere());
  });
}

void ScriptedNode::connect(const std::string& address) {
  NodeEntry entry = entering(address).wait(loop_.scope);
  generation = entry.generation;
  session_ = entry.session;
}

std::string ScriptedNode::refusalOf(const std::string& address) {
  std::string sentence;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { connect(address); })) {
    sentence = sentenceOf(*e);
    disconnect();
  }
  return sentence;
}

void ScriptedNode::disconnect() {
  session_ = nullptr;
  link_ = nullptr;
}

wire::NodeSession::Client& ScriptedNode::session() {
  return KJ_ASSERT_NONNULL(session_, "this node has no session");
}

void ScriptedNode::report(wire::NodeReport::Builder out) {
  auto devices = out.initDevices(devices_);
  for (unsigned i = 0; i < devices_; ++i) devices[i].setIndex(i);
  auto jobs = out.initJobs(unsigned(jobs_.size()));
  unsigned i = 0;
  for (const auto& [name, job] : jobs_) reportJob(name, job, jobs[i++]);
  auto withdrawn = out.initWithdrawn(unsigned(withdrawn_.size()));
  for (unsigned w = 0; w < withdrawn.size(); ++w) withdrawn.set(w, withdrawn_[w]);
}

void ScriptedNode::reportJob(const JobName& name, const Job& job, wire::JobReport::Builder out) {
  toWire(name, out.initSpec().initKey());
  out.getSpec().setUid(job.uid);
  out.getSpec().setSlurmJob(slurmJobs[name.name]);
  out.setGranted(job.granted);
  toWire(job.epoch, out.initEpoch());
  if (job.granted) out.initGrantedDevices(1).set(0, 0);
  out.setGathered(gathered[name.name]);
  out.getSpec().setGang(gangs[name.name]);
  const auto& all = spans[name.name];
  auto nodes = out.initNodes(unsigned(all.size()));
  for (unsigned n = 0; n < all.size(); ++n) nodes.set(n, all[n]);
  auto mine = [&](const auto& entry) { return entry.second.job == name; };
  auto participants = out.initParticipants(unsigned(std::ranges::count_if(participants_, mine)));
  unsigned i = 0;
  for (const auto& [id, p] : participants_) {
    if (p.job != name) continue;
    auto to = participants[i++];
    to.setId(id);
    to.setProcess(id);
    toWire(
        [&] {
          Devices devices;
          for (auto index : p.devices) devices.push_back({NodeId{}, index});
          return devices;
        }(),
        to.initDevices(unsigned(p.devices.size())));
    to.setEntered(p.entered);
    toWire(p.epoch, to.initEpoch());
    to.setWaiting(p.waiting);
    to.setRequest(p.request);
    to.initTicket().setGeneration(p.ticketGeneration);
    to.getTicket().setNumber(p.ticket);
  }
  auto members = out.initMembers(unsigned(std::ranges::count_if(members_, mine)));
  i = 0;
  for (const auto& [id, m] : members_)
    if (m.job == name) toWire(m.fact, int(id), members[i++]);
}

// What programs ask for. -------------------------------------------------------------------------

Outcome ScriptedNode::join(const std::string& group, const std::string& job,
                           std::uint64_t participant, std::vector<std::uint32_t> devices,
                           std::uint32_t uid) {
  JobName name{group, job};
  auto request = session().joinRequest();
  toWire(name, request.initSpec().initKey());
  request.getSpec().setUid(uid);
  request.getSpec().setSlurmJob(slurmJobs[name.name]);
  request.getSpec().setGang(gangs[name.name]);
  auto p = request.initParticipant();
  p.setId(participant);
  p.setProcess(participant);
  auto list = p.initDevices(unsigned(devices.size()));
  for (unsigned i = 0; i < devices.size(); ++i) list.set(i, devices[i]);
  Outcome outcome = fromWire(request.send().wait(loop_.scope).getOutcome(), NodeId{});
  if (outcome.ok()) {
    jobs_[name].uid = uid;
    participants_[participant] = {.job = name, .devices = std::move(devices)};
  }
  return outcome;
}

void ScriptedNode::withdraw(const std::string& group, const std::string& job,
                            std::uint64_t participant) {
  jobs_.erase({group, job});
  participants_.erase(participant);
  withdrawn_.push_back(participant);
}

void ScriptedNode::acquire(std::uint64_t participant, std::uint64_t request, bool tryOnly) {
  auto& p = participants_.at(participant);
  p.waiting = true;
  p.request = request;
  auto call = session().acquireRequest();
  call.setRequest(request);
  call.setParticipant(participant);
  call.setTryOnly(tryOnly);
  auto response = call.send().wait(loop_.scope);
  p.ticketGeneration = response.getTicket().getGeneration();
  p.ticket = response.getTicket().getNumber();
}

void ScriptedNode::cancel(std::uint64_t request) {
  for (auto& [id, p] : participants_)
    if (p.request == request) p.waiting = false;
  auto call = session().cancelRequest();
  call.setRequest(request);
  call.send().wait(loop_.scope);
}

void ScriptedNode::yield(std::uint64_t participant) {
  auto& p = participants_.at(participant);
  p.entered = false;
  yieldWith(participant, p.epoch);
}

void ScriptedNode::yieldWith(std::uint64_t participant, Epoch epoch) {
  auto call = session().yieldRequest();
  call.setParticipant(participant);
  toWire(epoch, call.initEpoch());
  call.send().wait(loop_.scope);
}

void ScriptedNode::yieldUnanswered(std::uint64_t participant) {
  auto& p = participants_.at(participant);
  p.entered = false;
  auto call = session().yieldRequest();
  call.setParticipant(participant);
  toWire(p.epoch, call.initEpoch());
  call.send().ignoreResult().detach([](kj::Exception&&) {});
  session().heartbeatRequest().send().wait(loop_.scope);  // calls are heard in their order
}

void ScriptedNode::leave(std::uint64_t participant, bool died) {
  participants_.erase(participant);
  auto call = session().leftRequest();
  call.setParticipant(participant);
  call.setDied(died);
  call.send().wait(loop_.scope);
}

void ScriptedNode::endJob(const std::string& group, const std::string& job) {
  jobs_.erase({group, job});
  auto call = session().jobEndedRequest();
  toWire(JobName{group, job}, call.initKey());
  call.send().wait(loop_.scope);
}

void ScriptedNode::seeMember(std::uint64_t member, const std::string& group, const std::string& job,
                             std::uint64_t bytes) {
  JobName name{group, job};
  members_[member] = {.job = name,
                      .fact = {.member = MemberId{member},
                               .residency = Residency::Resident,
                               .bytes = bytes,
                               .devices = {{NodeId{}, 0}}}};
  auto call = session().memberSeenRequest();
  toWire(name, call.initKey());
  toWire(members_[member].fact, int(member), call.initFact());
  call.send().wait(loop_.scope);
}

}  // namespace ts::test
