#include "fake_master.h"

#include <kj/debug.h>

#include <algorithm>

#include "wire/greet.h"

namespace ts::test {
namespace {}  // namespace

class FakeMaster::Session final : public wire::NodeSession::Server {
public:
  explicit Session(FakeMaster& m) : m_(m) {}

  kj::Promise<void> join(JoinContext context) override {
    auto job = text(context.getParams().getSpec().getKey().getName());
    auto p = context.getParams().getParticipant();
    m_.told.push_back("join " + job +
                      " uid=" + std::to_string(context.getParams().getSpec().getUid()));
    if (m_.joinAnswer.ok()) m_.participants[job].participant = p.getId();
    toWire(m_.joinAnswer, context.getResults().initOutcome());
    if (!m_.holdJoins) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    m_.heldJoins_.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }
  kj::Promise<void> admit(AdmitContext context) override {
    auto p = context.getParams();
    std::string devices;
    for (auto d : p.getDevices()) devices += " " + std::to_string(d);
    m_.told.push_back("admit " + text(p.getSpec().getKey().getName()) + devices);
    if (m_.holdAdmit) return kj::NEVER_DONE;
    auto results = context.getResults();
    toWire(m_.joinAnswer, results.initOutcome());
    auto set = results.initEnvironment(1);
    set.set(0, "NCCL_DEBUG=WARN");
    return kj::READY_NOW;
  }
  kj::Promise<void> outlook(OutlookContext context) override {
    auto results = context.getResults();
    results.setBefore(2);
    results.setMissing(3);
    results.setText("before it is job rl/other");
    return kj::READY_NOW;
  }
  kj::Promise<void> left(LeftContext context) override {
    auto p = context.getParams();
    return say("left " + std::to_string(p.getParticipant()) + (p.getDied() ? " died" : ""));
  }
  kj::Promise<void> jobEnded(JobEndedContext context) override {
    return say("job-ended " + text(context.getParams().getKey().getName()));
  }
  kj::Promise<void> memberSeen(MemberSeenContext context) override {
    auto job = text(context.getParams().getKey().getName());
    keep(m_.members[job], fromWire(context.getParams().getFact(), NodeId{}));
    return say("member-seen " + job);
  }
  kj::Promise<void> memberDied(MemberDiedContext context) override {
    return say("member-died " + std::to_string(context.getParams().getMember()));
  }
  kj::Promise<void> memberCleared(MemberClearedContext context) override {
    return say("member-cleared " + std::to_string(context.getParams().getMember()));
  }
  kj::Promise<void> acquire(AcquireContext context) override {
    auto p = context.getParams();
    bool waits = false;
    for (auto& [job, known] : m_.participants) {
      if (known.participant != p.getParticipant()) continue;
      waits = known.waiting && known.request == p.getRequest();
      known.request = p.getRequest();
    }
    auto ticket = context.getResults().initTicket();
    ticket.setGeneration(m_.generation.number);
    ticket.setNumber(m_.nextTicket++);
    return say((waits ? "place of " : "acquire ") + std::to_string(p.getParticipant()) +
               (p.getTryOnly() ? " try" : ""));
  }
  kj::Promise<void> cancel(CancelContext context) override {
    return say("cancel " + std::to_string(context.getParams().getRequest()));
  }
  kj::Promise<void> yield(YieldContext context) override {
    auto p = context.getParams();
    return say("yield " + std::to_string(p.getParticipant()) +
               " epoch=" + std::to_string(p.getEpoch().getCounter()));
  }
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    for (auto free : context.getParams().getFree()) m_.free[free.getIndex()] = free.getBytes();
    return kj::READY_NOW;
  }
  kj::Promise<void> finished(FinishedContext context) override {
    auto p = context.getParams();
    auto outcome = fromWire(p.getOutcome(), NodeId{});
    return say("finished " + std::to_string(p.getOperation()) + (outcome.ok() ? " ok" : " not ok"));
  }

  static void keep(std::vector<MemberFact>& facts, MemberFact fact) {
    auto same = std::ranges::find(facts, fact.member, &MemberFact::member);
    if (same == facts.end())
      facts.push_back(std::move(fact));
    else
      *same = std::move(fact);
  }

private:
  kj::Promise<void> say(std::string what) {
    m_.told.push_back(std::move(what));
    return kj::READY_NOW;
  }
  FakeMaster& m_;
};

class FakeMaster::Door final : public wire::Door::Server {
public:
  explicit Door(FakeMaster& m) : m_(m) {}

  kj::Promise<void> enterNode(EnterNodeContext context) override {
    auto p = context.getParams();
    m_.daemon_ = p.getDaemon();
    m_.participants.clear();
    m_.members.clear();
    m_.granted.clear();
    m_.nodes.clear();
    for (auto job : p.getReport().getJobs()) read(job);
    for (auto id : p.getReport().getWithdrawn()) m_.told.push_back("undone " + std::to_string(id));
    if (m_.nameIsTaken) kj::throwFatalException(nameTaken("by a test"));
    ++m_.sessions;
    m_.told.push_back("session " + text(p.getName()));
    context.getResults().setSession(kj::heap<Session>(m_));
    toWire(m_.generation, context.getResults().initGeneration());
    context.getResults().setHeartbeatUs(m_.heartbeatUs);
    if (!m_.holdEntry) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    m_.entry_ = kj::mv(paf.fulfiller);
    return kj::mv(paf.promise);
  }

private:
  void read(wire::JobReport::Reader job) {
    auto name = text(job.getSpec().getKey().getName());
    m_.granted[name] = job.getGranted();
    for (auto node : job.getNodes()) m_.nodes[name].push_back(text(node));
    for (auto fact : job.getMembers()) {
      Session::keep(m_.members[name], fromWire(fact, NodeId{}));
    }
    for (auto p : job.getParticipants()) {
      m_.participants[name] = {p.getId(),      p.getRequest(),         p.getWaiting(),
                               p.getEntered(), fromWire(p.getEpoch()), p.getTicket().getNumber()};
      if (p.getYielded())
        m_.told.push_back("yield " + std::to_string(p.getId()) +
                          " epoch=" + std::to_string(p.getEpoch().getCounter()));
    }
  }
  FakeMaster& m_;
};

class FakeMaster::Bootstrap final : public wire::Master::Server {
public:
  explicit Bootstrap(FakeMaster& m) : m_(m) {}

  kj::Promise<void> greet(GreetContext context) override {
    auto out = context.getResults();
    out.setVersion(1);
    out.setAuth("none");
    toWire(m_.generation, out.initGeneration());
    out.setDoor(kj::heap<Door>(m_));
    return kj::READY_NOW;
  }

private:
  FakeMaster& m_;
};

FakeMaster::FakeMaster(Loop& loop) : loop_(loop) {
  listenAgain();
}

void FakeMaster::listenAgain() {
  auto address = loop_.address(kj::str("127.0.0.1:", port_));
  listener_ = address->listen();
  port_ = listener_->getPort();
  accepting_ = acceptLoop().eagerlyEvaluate([](kj::Exception&& e) { KJ_LOG(ERROR, e); });
}

void FakeMaster::stopListening() {
  accepting_ = kj::READY_NOW;
  listener_ = nullptr;
}

kj::Promise<void> FakeMaster::acceptLoop() {
  return listener_->accept().then([this](kj::Own<kj::AsyncIoStream> stream) {
    links_.push_back(
        kj::heap<Link>(kj::mv(stream), Link::Side::Listener, kj::heap<Bootstrap>(*this)));
    return acceptLoop();
  });
}

void FakeMaster::letJoins() {
  holdJoins = false;
  for (auto& join : heldJoins_) join->fulfill();
  heldJoins_.clear();
}

bool FakeMaster::heard(const std::string& what) const {
  return std::ranges::find(told, what) != told.end();
}

unsigned FakeMaster::count(const std::string& beginning) const {
  return unsigned(std::ranges::count_if(
      told, [&](const std::string& line) { return line.starts_with(beginning); }));
}

template <class Request>
FakeMaster::Order FakeMaster::send(Request request, const std::string& job) {
  auto order = request.getOrder();
  order.setOperation(nextOperation++);
  toWire(JobName{group, job}, order.initKey());
  return request.send()
      .then([](auto response) { return fromWire(response.getOutcome(), NodeId{}); })
      .eagerlyEvaluate(nullptr);
}

FakeMaster::Order FakeMaster::prepare(const std::string& job, std::vector<MemberId> out,
                                      std::vector<MemberId> in) {
  auto request = daemon().prepareRequest();
  auto outgoing = request.initOutgoing(unsigned(out.size()));
  for (unsigned i = 0; i < out.size(); ++i) outgoing.set(i, std::uint64_t(out[i]));
  auto incoming = request.initIncoming(unsigned(in.size()));
  for (unsigned i = 0; i < in.size(); ++i) incoming.set(i, std::uint64_t(in[i]));
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::quiesce(const std::string& job, std::uint64_t deadlineUs) {
  auto request = daemon().quiesceRequest();
  request.setDeadlineUs(deadlineUs);
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::release(const std::string& job) {
  return send(daemon().releaseRequest(), job);
}
FakeMaster::Order FakeMaster::save(const std::string& job, MemberId member) {
  auto request = daemon().saveRequest();
  request.setMember(std::uint64_t(member));
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::restore(const std::string& job, MemberId member) {
  auto request = daemon().restoreRequest();
  request.setMember(std::uint64_t(member));
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::grant(const std::string& job, std::uint64_t counter,
                                    std::vector<std::uint32_t> devices,
                                    std::vector<std::uint64_t> requests) {
  auto request = daemon().grantRequest();
  toWire(Epoch{generation.number, counter}, request.initEpoch());
  auto d = request.initDevices(unsigned(devices.size()));
  for (unsigned i = 0; i < devices.size(); ++i) d.set(i, devices[i]);
  auto r = request.initRequests(unsigned(requests.size()));
  for (unsigned i = 0; i < requests.size(); ++i) r.set(i, requests[i]);
  request.setWaitedUs(1234);
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::endSlice(const std::string& job, std::uint64_t counter) {
  auto request = daemon().endSliceRequest();
  toWire(Epoch{generation.number, counter}, request.initEpoch());
  return send(kj::mv(request), job);
}
FakeMaster::Order FakeMaster::dropBooking(const std::string& job) {
  return send(daemon().dropBookingRequest(), job);
}
FakeMaster::Order FakeMaster::kill(const std::string& job) {
  auto request = daemon().killRequest();
  request.setWhy("a test says so");
  return send(kj::mv(request), job);
}
void FakeMaster::refuse(std::uint64_t number, Cause cause, const std::string& detail) {
  auto request = daemon().refuseRequest();
  request.setRequest(number);
  request.setCause(toWire(cause));
  request.setDetail(detail);
  request.send().wait(loop_.scope);
}
void FakeMaster::spans(const std::string& job, std::vector<std::string> names) {
  auto request = daemon().spansRequest();
  toWire(JobName{group, job}, request.initKey());
  auto list = request.initNodes(unsigned(names.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, names[i]);
  request.send().wait(loop_.scope);
}
void FakeMaster::askToYield(const std::string& job, std::uint64_t counter) {
  auto request = daemon().askToYieldRequest();
  toWire(JobName{group, job}, request.initKey());
  toWire(Epoch{generation.number, counter}, request.initEpoch());
  request.send().wait(loop_.scope);
}

}  // namespace ts::test
