#include "node/participants.h"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "config/step_name.h"
#include "node/causes.h"
#include "node/facts.h"
#include "node/words.h"

// Joining, leaving, and who sits where. Turns are in slices.cpp.
namespace ts::node {
namespace {

constexpr int kLongestChain = 256;  // what is read while processes come and go may loop

// Why a join does not fit the job that is here already, or nothing.
std::string conflict(const JobSpec& wanted, const JobSpec& has) {
  auto differs = [&](const char* what, const std::string& a, const std::string& b) {
    return "job " + text(has.key) + " has " + what + " " + b + ", this join says " + a;
  };
  if (wanted.gang != has.gang) {
    return differs("gang", std::to_string(wanted.gang), std::to_string(has.gang));
  }
  if (wanted.backend != has.backend) return differs("backend", wanted.backend, has.backend);
  return "";
}

}  // namespace

Participants::Participants(Parts parts)
    : parts_(std::move(parts)), registry_(parts_.registry), tasks_(*this) {
  for (const auto& [id, p] : registry_.participants()) {
    if (!p.departed) seats_[id].told = p.wait.has_value();
    if (p.wait) waiting_[p.wait->request] = id;
  }
}

const Participant* Participants::of(const Connection& connection) {
  auto it = sitting_.find(connection.id());
  return it == sitting_.end() ? nullptr : registry_.participant(it->second);
}

void Participants::sit(Participant& p, Connection& connection) {
  auto& seat = seats_[p.id];
  if (seat.connection) standUp(p.id);
  seat.connection = connection.id();
  sitting_[connection.id()] = p.id;
}

void Participants::answer(ParticipantId id, std::uint64_t request, tsl_status status,
                          std::string_view detail) {
  auto& seat = seats_[id];
  if (!seat.connection || request == 0) return;
  if (auto* c = parts_.find(*seat.connection)) c->reply(request, status, detail);
}

tsl_reply Participants::sliceReply(const Epoch& epoch) const {
  tsl_reply r{};
  r.status = TSL_OK;
  r.epoch_generation = epoch.generation;
  r.epoch_counter = epoch.counter;
  return r;
}

// --- join ---------------------------------------------------------------------------------------

void Participants::join(Connection& from, std::uint64_t request, JoinRequest what) {
  if (auto* p = registry_.participantOf(from.peer().process.identity)) {
    return joinAgain(from, request, what, *p);
  }
  joinAnew(from, request, what);
}

void Participants::joinAgain(Connection& from, std::uint64_t request, const JoinRequest& what,
                             Participant& p) {
  auto& seat = seats_[p.id];
  auto* old = seat.connection ? parts_.find(*seat.connection) : nullptr;
  // The end of the old connection may be read later than the first message of the new one.
  bool living = old && !old->hungUp();
  if (living || what.spec.key != p.job) {
    return from.reply(request, TSL_ALREADY_JOINED,
                      "process " + std::to_string(p.process.identity.pid) +
                          " is a participant of " + text(p.job) + " already" +
                          (living ? "" : "; it must leave before it joins another job"));
  }
  sit(p, from);
  if (p.atGate && !what.atGate) return takeOver(from, request, p);
  if (!p.joined) {  // its first join is still with the master: that one answers
    seat.joining = request;
    return;
  }
  parts_.log.info(
      Line("rejoin").add("job", text(p.job)).add("pid", std::int64_t(p.process.identity.pid)));
  from.reply(request, sliceReply(p.entered.value_or(Epoch{})));
  if (seat.asked && p.entered) askToYield(p.job, *p.entered);
}

void Participants::joinAnew(Connection& from, std::uint64_t request, const JoinRequest& what) {
  Job* job = registry_.job(what.spec.key);
  if (job && job->spec.uid != what.spec.uid) {
    parts_.log.warning(Line("join-refused")
                           .add("job", text(what.spec.key))
                           .add("uid", std::int64_t(what.spec.uid)));
    return from.reply(request, TSL_PERMISSION,
                      "job " + text(what.spec.key) + " belongs to uid " +
                          std::to_string(job->spec.uid) + ", uid " + std::to_string(what.spec.uid) +
                          " may not join it");
  }
  auto why = job ? conflict(what.spec, job->spec) : "";
  if (!why.empty()) return from.reply(request, TSL_INVALID, why);
  if (!job && isForeignStep(from, what.spec)) {
    return from.reply(request, TSL_PERMISSION,
                      "only steps of Slurm jobs are called as " + text(what.spec.key) +
                          " is, and uid " + std::to_string(what.spec.uid) +
                          " has no such step on this node: choose another name");
  }
  auto* waiter = job && !what.atGate ? atGateBefore(from.peer().process, what.spec.key) : nullptr;
  if (waiter) return takeOver(from, request, *waiter);
  if (mustWait(what)) return waitForMaster(from, request, what);
  if (!parts_.link.isUp()) return from.reply(request, TSL_MASTER_DOWN, parts_.link.whyDown());
  if (auto full = registry_.whyFull(); !full.empty()) {
    parts_.log.warning(Line("join-refused").add("job", text(what.spec.key)).add("why", full));
    return from.reply(request, TSL_UNAVAILABLE, full);
  }
  auto identity = from.peer().process.identity;
  if (!parts_.watch.add(identity)) {
    return from.reply(request, TSL_NO_SUCH_PROCESS,
                      "process " + std::to_string(identity.pid) + " has ended");
  }
  if (!job) registry_.addJob(what.spec);
  auto& p = registry_.add({.id = ParticipantId{registry_.newId()},
                           .job = what.spec.key,
                           .process = from.peer().process,
                           .devices = what.devices,
                           .atGate = what.atGate});
  sit(p, from);
  seats_[p.id].joining = request;
  askToJoin(p, what);
}

// Slurm's numbers can be guessed: who took the name of a coming step would keep its user out.
bool Participants::isForeignStep(const Connection& from, const JobSpec& spec) {
  const auto& peer = from.peer();
  bool mayName = spec.slurmJob != 0 || peer.isTrusted || peer.process.uid == 0;
  return !mayName && isStepName(spec.key.name);
}

// The task that the process comes from, if it waited for its turn before it started and no process
// of it has joined yet.
Participant* Participants::atGateBefore(const Process& process, const JobName& job) {
  std::map<Identity, Participant*> gates;
  for (auto id : registry_.job(job)->participants) {
    auto* p = registry_.participant(id);
    if (p->atGate && p->joined && !p->departed) gates[p->process.identity] = p;
  }
  if (gates.empty()) return nullptr;
  auto at = std::optional(process);
  for (int i = 0; at && i < kLongestChain; ++i) {
    auto gate = gates.find(at->identity);
    if (gate != gates.end()) return gate->second;
    at = at->parent > 1 ? readProcess(at->parent) : std::nullopt;
  }
  return nullptr;
}

// With the slice that was acquired for it: it acquires once more and is answered at once.
void Participants::takeOver(Connection& from, std::uint64_t request, Participant& p) {
  const auto& process = from.peer().process;
  if (!parts_.watch.add(process.identity)) {
    return from.reply(request, TSL_NO_SUCH_PROCESS,
                      "process " + std::to_string(process.identity.pid) + " has ended");
  }
  auto job = p.job;
  registry_.reseat(p, process);
  sit(p, from);
  parts_.log.info(
      Line("take-over").add("job", text(job)).add("pid", std::int64_t(process.identity.pid)));
  auto reply = sliceReply(p.entered.value_or(Epoch{}));
  reply.flags = p.entered ? TSL_REPLY_FROM_GATE : 0;
  from.reply(request, reply);
  if (seats_[p.id].asked && p.entered) askToYield(job, *p.entered);
  parts_.settle(job);  // where members are what participants are, they have changed
  parts_.roll.joined(job);
}

bool Participants::mustWait(const JoinRequest& what) const {
  auto state = parts_.link.state();
  return state == MasterLink::State::Connecting ||
         (state == MasterLink::State::Down && parts_.timer.now() < what.until);
}

void Participants::waitForMaster(Connection& from, std::uint64_t request, const JoinRequest& what) {
  parts_.log.info(Line("join-waits")
                      .add("job", text(what.spec.key))
                      .add("pid", std::int64_t(from.peer().process.identity.pid))
                      .add("why", parts_.link.whyDown()));
  pending_.push_back({from.id(), request, what});
  tasks_.add(parts_.timer.atTime(what.until).then([this] { linkSettled(); }));
}

void Participants::askToJoin(Participant& p, const JoinRequest& what) {
  auto asking = parts_.link.session().joinRequest();
  toWire(registry_.job(p.job)->spec, asking.initSpec());
  toWire(p, asking.initParticipant());
  tasks_.add(asking.send().then(
      [this, id = p.id](auto response) {
        joinAnswered(id, fromWire(response.getOutcome(), NodeId{}));
      },
      [this, id = p.id, what](kj::Exception&& e) {
        bool lost = e.getType() == kj::Exception::Type::DISCONNECTED;
        if (lost) return joinLost(id, what, sentenceOf(e));
        joinFailed(id, TSL_INTERNAL, sentenceOf(e));
      }));
}

// The master may have taken it and not have come to say so: it is told that it is void, and asked
// anew.
void Participants::joinLost(ParticipantId id, const JoinRequest& what, const std::string& why) {
  if (!registry_.participant(id)) return;
  auto& seat = seats_[id];
  auto request = seat.joining;
  auto* c = seat.connection ? parts_.find(*seat.connection) : nullptr;
  withdraw(id);
  if (!c || request == 0) return;
  if (parts_.timer.now() < what.until) return waitForMaster(*c, request, what);
  c->reply(request, TSL_MASTER_DOWN, why);
}

void Participants::withdraw(ParticipantId id) {
  auto& p = *registry_.participant(id);
  auto& seat = seats_[id];
  if (seat.connection) sitting_.erase(*seat.connection);
  seat = {};
  p.departed = true;
  registry_.record(p);
}

void Participants::joinAnswered(ParticipantId id, const Outcome& outcome) {
  auto* p = registry_.participant(id);
  if (!p) return;
  if (!outcome.ok()) return joinFailed(id, statusOf(outcome.cause), sentenceFor(outcome));
  p->joined = true;
  registry_.record(*p);
  if (p->departed) return tellLeft(id);  // meanwhile
  parts_.log.info(Line("join")
                      .add("job", text(p->job))
                      .add("pid", std::int64_t(p->process.identity.pid))
                      .add("uid", std::int64_t(p->process.uid)));
  // Its members are known to the master before it can ask for a turn.
  parts_.roll.joined(p->job);
  parts_.roll.then(p->job, [this, id] {
    auto& seat = seats_[id];
    answer(id, std::exchange(seat.joining, 0), TSL_OK, "");
  });
}

void Participants::joinFailed(ParticipantId id, tsl_status status, const std::string& why) {
  auto* p = registry_.participant(id);
  if (!p) return;
  answer(id, std::exchange(seats_[id].joining, 0), status, why);
  parts_.log.info(Line("join-refused").add("job", text(p->job)).add("why", why));
  gone(id);
}

// Also when one has waited enough.
void Participants::linkSettled() {
  std::vector<Pending> due;
  std::erase_if(pending_, [&](const Pending& p) {
    if (mustWait(p.what)) return false;
    due.push_back(p);
    return true;
  });
  for (auto& waiting : due) {
    if (auto* c = parts_.find(waiting.connection)) join(*c, waiting.request, waiting.what);
  }
}

// --- leave --------------------------------------------------------------------------------------

Participant* Participants::at(const Connection& from, std::uint64_t request) {
  auto it = sitting_.find(from.id());
  auto* p = it == sitting_.end() ? nullptr : registry_.participant(it->second);
  if (p && p->joined) return p;
  const_cast<Connection&>(from).reply(request, TSL_NOT_JOINED,
                                      "process " +
                                          std::to_string(from.peer().process.identity.pid) +
                                          " has not joined on this connection: join first");
  return nullptr;
}

void Participants::leave(Connection& from, std::uint64_t request) {
  auto* p = at(from, request);
  if (!p) return;
  if (p->wait) giveUp(p->id, p->wait->request, TSL_CANCELLED, "this process left");
  if (p->entered) giveBack(*p, *p->entered);
  parts_.log.info(
      Line("leave").add("job", text(p->job)).add("pid", std::int64_t(p->process.identity.pid)));
  from.reply(request, TSL_OK, "");
  depart(*p, false);
}

void Participants::closed(Connection& connection) {
  std::erase_if(pending_, [&](const Pending& w) { return w.connection == connection.id(); });
  auto it = sitting_.find(connection.id());
  if (it != sitting_.end()) standUp(it->second);
}

// What was asked on its connection cannot be answered any more: nobody listens there.
void Participants::standUp(ParticipantId id) {
  auto& seat = seats_[id];
  sitting_.erase(*seat.connection);
  seat.connection.reset();
  seat.joining = seat.waiting = 0;
  auto* p = registry_.participant(id);
  if (p && p->wait) awaitReturn(*p);
}

// It may come back and go on waiting. If it does not, nobody shall hold a turn that nobody knows
// of.
void Participants::awaitReturn(const Participant& p) {
  startTimer(p.id, parts_.reconnectGrace, [this, id = p.id, request = p.wait->request] {
    giveUp(id, request, TSL_CANCELLED, "");
  });
}

void Participants::opened() {
  for (const auto& [id, p] : registry_.participants()) {
    if (p.wait && !seats_[id].connection) awaitReturn(p);
  }
}

void Participants::processEnded(const Identity& identity) {
  auto* p = registry_.participantOf(identity);
  if (!p) return;
  if (p->atGate) return leftGate(*p);
  parts_.log.info(
      Line("participant-died").add("job", text(p->job)).add("pid", std::int64_t(identity.pid)));
  depart(*p, true);
}

// Its program knows nothing of turns: the end of the one is the end of the other.
void Participants::leftGate(Participant& p) {
  if (p.wait) giveUp(p.id, p.wait->request, TSL_CANCELLED, "");
  if (p.entered) giveBack(p, *p.entered);
  parts_.log.info(
      Line("leave").add("job", text(p.job)).add("pid", std::int64_t(p.process.identity.pid)));
  depart(p, false);
}

void Participants::dropUnjoined() {
  std::vector<ParticipantId> unjoined;
  for (const auto& [id, p] : registry_.participants()) {
    if (!p.joined && !p.departed) unjoined.push_back(id);
  }
  for (auto id : unjoined) withdraw(id);
}

void Participants::depart(Participant& p, bool died) {
  if (p.wait) endWait(p, false);
  p.departed = true;
  p.died = died;
  registry_.record(p);
  auto id = p.id;
  auto& seat = seats_[id];
  if (seat.connection) sitting_.erase(*seat.connection);
  seat = {};
  if (p.joined) parts_.roll.then(p.job, [this, id] { tellLeft(id); });
}

void Participants::tellLeft(ParticipantId id) {
  auto* p = registry_.participant(id);
  if (!p || seats_[id].leaving) return;
  seats_[id].leaving = true;
  parts_.link.tell([this, id, died = p->died](wire::NodeSession::Client& session) {
    auto call = session.leftRequest();
    call.setParticipant(std::uint64_t(id));
    call.setDied(died);
    return call.send().then([this, id](auto&&) { gone(id); });
  });
}

// Nothing is owed to anybody any more.
void Participants::gone(ParticipantId id) {
  auto* p = registry_.participant(id);
  if (!p) return;
  auto job = p->job;
  auto& seat = seats_[id];
  if (seat.connection) sitting_.erase(*seat.connection);
  seats_.erase(id);
  registry_.erase(id);
  parts_.settle(job);
}

void Participants::reported() {
  for (auto& [id, seat] : seats_) {
    seat.leaving = false;
    seat.told = true;
  }
  for (auto [request, id] : std::map(waiting_)) askPlace(id, request);
  for (const auto& [id, p] : registry_.participants()) {
    if (p.untold) yieldReported(id, *p.untold);
    if (p.departed && p.joined) tellLeft(id);
    if (p.departed && !p.joined) withdrawnReported(id);
  }
}

// With the session that follows the report the master has taken it.
void Participants::withdrawnReported(ParticipantId id) {
  parts_.link.tell([this, id](wire::NodeSession::Client&) -> kj::Promise<void> {
    gone(id);
    return kj::READY_NOW;
  });
}

void Participants::linkLost() {
  std::vector<std::pair<ParticipantId, RequestId>> tries;
  for (const auto& [id, p] : registry_.participants()) {
    if (p.wait && p.wait->tryOnly) tries.emplace_back(id, p.wait->request);
  }
  for (auto [id, request] : tries) giveUp(id, request, TSL_MASTER_DOWN, parts_.link.whyDown());
}

void Participants::taskFailed(kj::Exception&& exception) {
  parts_.log.error(Line("participant-task-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts::node
