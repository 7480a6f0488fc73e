#include "master/node_session.h"

#include "master/admission.h"
#include "master/facts.h"
#include "master/outlook.h"
#include "wire/greet.h"

namespace ts {

NodeSession::NodeSession(Shell& shell, NodeRecord& node, wire::NodeDaemon::Client daemon,
                         kj::Timer& timer, std::function<void(std::string why)> hangUp)
    : shell_(shell),
      node_(node),
      link_(
          kj::mv(daemon), timer,
          [&shell] {
            return Pulse{shell.config().heartbeat, shell.config().suspectAfter};
          },
          std::move(hangUp)) {}

NodeSession::~NodeSession() noexcept(false) {
  if (link_.retired()) return;
  node_.link = nullptr;
  shell_.lost(node_);
}

void NodeSession::alive() {
  if (link_.retired()) kj::throwFatalException(sentence("a later session has taken over"));
  link_.heard();
}

// A job, its processes. --------------------------------------------------------------------------

kj::Promise<void> NodeSession::join(JoinContext context) {
  alive();
  auto params = context.getParams();
  Outcome outcome = ts::join(shell_, node_, params.getSpec(), params.getParticipant());
  toWire(outcome, context.getResults(capnp::MessageSize{32, 0}).initOutcome());
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::left(LeftContext context) {
  alive();
  auto params = context.getParams();
  if (auto* participant = shell_.directory().findParticipant(node_, params.getParticipant()))
    shell_.leave(*participant, params.getDied());
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::jobEnded(JobEndedContext context) {
  alive();
  if (auto* job = shell_.directory().find(fromWire(context.getParams().getKey())))
    shell_.endedOn(node_, *job);
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::memberSeen(MemberSeenContext context) {
  alive();
  auto params = context.getParams();
  auto* job = shell_.directory().find(fromWire(params.getKey()));
  if (job == nullptr) return kj::READY_NOW;  // ended meanwhile
  MemberFact fact = fromWire(params.getFact(), node_.id);
  fact.member =
      member(shell_.directory(), node_, *job, std::uint64_t(fact.member), params.getFact().getPid())
          .id;
  shell_.feed(MemberSeen{job->id, node_.id, std::move(fact)});
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::memberDied(MemberDiedContext context) {
  alive();
  if (auto* member = shell_.directory().findMember(node_, context.getParams().getMember()))
    shell_.feed(MemberDied{member->id});
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::memberCleared(MemberClearedContext context) {
  alive();
  if (auto* member = shell_.directory().findMember(node_, context.getParams().getMember()))
    shell_.cleared(*member);
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::admit(AdmitContext context) {
  alive();
  auto params = context.getParams();
  auto spec = params.getSpec();
  Outcome outcome = admissible(shell_, node_, spec, params.getDevices());
  auto results = context.getResults();
  toWire(outcome, results.initOutcome());
  if (!outcome.ok()) return kj::READY_NOW;
  const auto& set = shell_.section(fromWire(spec.getKey()).group).environment;
  auto out = results.initEnvironment(unsigned(set.size()));
  unsigned i = 0;
  for (const auto& [name, value] : set) out.set(i++, (name + "=" + value).c_str());
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::outlook(OutlookContext context) {
  alive();
  auto found = outlookOf(shell_, fromWire(context.getParams().getKey()));
  auto results = context.getResults();
  results.setBefore(found.before);
  results.setMissing(found.missing);
  results.setText(found.text.c_str());
  return kj::READY_NOW;
}

// Turns. -----------------------------------------------------------------------------------------

kj::Promise<void> NodeSession::acquire(AcquireContext context) {
  alive();
  auto params = context.getParams();
  auto ticket = context.getResults(capnp::MessageSize{8, 0}).initTicket();
  auto* participant = shell_.directory().findParticipant(node_, params.getParticipant());
  if (participant == nullptr) {
    shell_.refuseUnknown(node_, params.getRequest());
    return kj::READY_NOW;
  }
  participant->job->label = kj::StringPtr(params.getPhase()).cStr();
  auto* known = shell_.directory().findRequest(node_, params.getRequest());
  auto& request =
      known != nullptr ? *known : shell_.directory().addRequest(params.getRequest(), *participant);
  RequestId id = request.id;
  if (known == nullptr)
    shell_.feed(AcquireRequested{
        .request = id, .participant = participant->id, .tryOnly = params.getTryOnly()});
  ticket.setGeneration(shell_.generation().number);
  ticket.setNumber(shell_.cluster().ticket(id).value_or(0));
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::cancel(CancelContext context) {
  alive();
  if (auto* request = shell_.directory().findRequest(node_, context.getParams().getRequest()))
    shell_.cancel(*request);
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::yield(YieldContext context) {
  alive();
  auto params = context.getParams();
  auto participant = params.getParticipant();
  auto epoch = fromWire(params.getEpoch());
  context.releaseParams();
  context.allowCancellation();  // who has gone gets no answer, and the call does not keep us alive
  auto answer = link_.owed().untilNextCall();  // the yield itself may bring that call
  shell_.yielded(node_, participant, epoch);
  return answer;
}

kj::Promise<void> NodeSession::heartbeat(HeartbeatContext context) {
  alive();
  for (auto free : context.getParams().getFree())
    for (auto& device : node_.devices)
      if (device.index == free.getIndex()) device.freeBytes = free.getBytes();
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::finished(FinishedContext context) {
  alive();
  auto params = context.getParams();
  shell_.orders().finishedLate(node_, OperationId{params.getOperation()},
                               fromWire(params.getOutcome(), node_.id));
  return kj::READY_NOW;
}

}  // namespace ts
