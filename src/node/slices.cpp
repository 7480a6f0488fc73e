#include <algorithm>
#include <vector>

#include "node/causes.h"
#include "node/facts.h"
#include "node/mps.h"
#include "node/participants.h"
#include "node/words.h"

// Turns: asking for them, getting them, giving them back.
namespace ts::node {
namespace {

tsl_reply grantReply(const GrantOrder& order) {
  tsl_reply r{};
  r.status = TSL_OK;
  r.epoch_generation = order.epoch.generation;
  r.epoch_counter = order.epoch.counter;
  r.waited_us = order.waitedUs;
  r.bytes = order.bytes;
  r.restored = order.restored;
  return r;
}

std::string sentenceFor(const RefuseOrder& order) {
  auto out = ts::node::sentenceFor(order.why);
  if (!order.holder.empty() && out.find(order.holder) == std::string::npos) {
    out += "; in the way: " + order.holder;
  }
  if (order.why.need > 0) {
    out += " (needs " + std::to_string(order.why.need) + " bytes, free " +
           std::to_string(order.why.free) + ")";
  }
  return out;
}

}  // namespace

// --- acquire ------------------------------------------------------------------------------------

void Participants::acquire(Connection& from, std::uint64_t request, const tsl_acquire& what) {
  auto* p = at(from, request);
  if (!p) return;
  if (what.deadline_ms < -1) {
    return from.reply(request, TSL_INVALID,
                      "a deadline of " + std::to_string(what.deadline_ms) +
                          " ms: -1 is none, 0 is a try, more is a time from now");
  }
  if (p->entered || p->wait) return acquireAgain(from, request, what, *p);
  if (what.deadline_ms == 0 && !parts_.link.isUp()) {
    return from.reply(request, TSL_MASTER_DOWN, parts_.link.whyDown());
  }
  seats_[p->id].waiting = request;
  startWaiting(p->id, what);
}

// Either a mistake, or a caller whose connection broke and who asks again.
void Participants::acquireAgain(Connection& from, std::uint64_t request, const tsl_acquire& what,
                                Participant& p) {
  auto& seat = seats_[p.id];
  if (p.entered) {
    if (seat.undelivered) {
      seat.timer = nullptr;
      from.reply(request, *seat.undelivered);
      seat.undelivered.reset();
      seat.grantedOn = from.id();
      return;
    }
    if (seat.grantedOn == from.id()) {
      return from.reply(request, TSL_INVALID,
                        "this process is in slice " + text(*p.entered) + " already");
    }
    seat.grantedOn = from.id();
    return from.reply(request, sliceReply(*p.entered));
  }
  if (seat.waiting != 0) {
    return from.reply(request, TSL_INVALID,
                      "this process waits already, with request " + std::to_string(seat.waiting));
  }
  seat.timer = nullptr;
  seat.waiting = request;
  if (what.deadline_ms > 0) startDeadline(p.id, p.wait->request, what.deadline_ms);
}

void Participants::startWaiting(ParticipantId id, const tsl_acquire& what) {
  auto& p = *registry_.participant(id);
  RequestId request{registry_.newId()};
  p.wait = Wait{.request = request,
                .tryOnly = what.deadline_ms == 0,
                .phase = std::string(textOf(what.phase))};
  waiting_[request] = id;
  seats_[id].told = false;
  if (what.deadline_ms > 0) startDeadline(id, request, what.deadline_ms);
  parts_.roll.then(p.job, [this, id, request] { tellAcquire(id, request); });
}

void Participants::tellAcquire(ParticipantId id, RequestId request) {
  if (!seats_[id].told) sendAcquire(id, request);
}

void Participants::sendAcquire(ParticipantId id, RequestId request) {
  auto* p = registry_.participant(id);
  if (!p || !p->wait || p->wait->request != request) return;
  for (const auto* m : registry_.membersOf(p->job)) {
    if (!m->mps || m->ended) continue;
    return giveUp(id, request, TSL_UNSUPPORTED, mpsRefusal(m->process.identity.pid, kMpsByDriver));
  }
  parts_.link.tell([this, id, request](wire::NodeSession::Client& session) -> kj::Promise<void> {
    auto* p = registry_.participant(id);
    if (!p || !p->wait || p->wait->request != request) return kj::READY_NOW;
    seats_[id].told = true;
    auto call = session.acquireRequest(capnp::MessageSize{24, 0});
    call.setRequest(std::uint64_t(request));
    call.setParticipant(std::uint64_t(id));
    call.setTryOnly(p->wait->tryOnly);
    call.setPhase(p->wait->phase);
    return call.send().then([this, id, request](auto&& response) {
      const auto ticket = response.getTicket();
      parts_.link.answers().keep(kj::mv(response));
      auto* p = registry_.participant(id);
      if (!p || !p->wait || p->wait->request != request) return;
      p->wait->ticketGeneration = ticket.getGeneration();
      p->wait->ticketNumber = ticket.getNumber();
      // A try ends with this daemon, or with its line to the master.
      if (!p->wait->hasPlace() || p->wait->tryOnly) return;
      registry_.recordWait(*p);
      parts_.log.debug(Line("placed")
                           .add("job", text(p->job))
                           .add("pid", std::int64_t(p->process.identity.pid))
                           .add("ticket", ticket.getNumber()));
    });
  });
}

// The report has said that it waits: whoever gives up from now on takes that back. Its place in the
// queue comes with the answer to an acquire.
void Participants::askPlace(ParticipantId id, RequestId request) {
  auto* p = registry_.participant(id);
  if (p && p->wait && !p->wait->hasPlace()) sendAcquire(id, request);
}

void Participants::startDeadline(ParticipantId id, RequestId request, std::int64_t ms) {
  constexpr std::int64_t kLongest = 1000ll * 3600 * 24 * 365;
  startTimer(id, std::min(ms, kLongest) * kj::MILLISECONDS, [this, id, request, ms] {
    giveUp(id, request, TSL_TIMED_OUT,
           "the turn has not come within " + std::to_string(ms) + " ms");
  });
}

void Participants::startTimer(ParticipantId id, kj::Duration delay, std::function<void()> then) {
  seats_[id].timer =
      parts_.timer.afterDelay(delay)
          .then([this, then = std::move(then)] { tasks_.add(kj::evalLater([then] { then(); })); })
          .eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); });
}

void Participants::cancel(Connection& from, std::uint64_t target) {
  auto it = sitting_.find(from.id());
  auto* p = it == sitting_.end() ? nullptr : registry_.participant(it->second);
  if (!p || !p->wait || seats_[p->id].waiting != target)
    return;  // the answer is on its way already
  giveUp(p->id, p->wait->request, TSL_CANCELLED, "");
}

void Participants::giveUp(ParticipantId id, RequestId request, tsl_status status,
                          const std::string& why) {
  auto* p = registry_.participant(id);
  if (!p || !p->wait || p->wait->request != request) return;
  answer(id, seats_[id].waiting, status, why);
  endWait(*p, true);
}

// `withdraw`: the master still thinks that it waits.
void Participants::endWait(Participant& p, bool withdraw) {
  auto& seat = seats_[p.id];
  auto request = p.wait->request;
  if (p.wait->hasPlace() && !p.wait->tryOnly) registry_.forgetWait(p.id);
  waiting_.erase(request);
  p.wait.reset();
  seat.waiting = 0;
  seat.timer = nullptr;
  if (!withdraw || !seat.told) return;
  parts_.link.tell([request](wire::NodeSession::Client& session) {
    auto call = session.cancelRequest(capnp::MessageSize{16, 0});
    call.setRequest(std::uint64_t(request));
    return call.send().ignoreResult();
  });
}

// --- grants -------------------------------------------------------------------------------------

void Participants::granted(const GrantOrder& order) {
  if (parts_.counted) parts_.counted(order);
  std::vector<ParticipantId> inside;
  for (auto request : order.requests) {
    auto waiting = waiting_.find(request);
    // Else it gave up, or ended, while the grant was on its way. The master is told and takes the
    // turn back; also when the caller asks again, for that is another request.
    if (waiting != waiting_.end()) inside.push_back(waiting->second);
  }
  registry_.enter(inside, order.epoch);
  for (auto id : inside) letIn(*registry_.participant(id), order);
}

void Participants::letIn(Participant& p, const GrantOrder& order) {
  seats_[p.id].asked = false;
  deliver(p, grantReply(order));
  parts_.meters.granted(order.waitedUs);
  parts_.log.info(Line("grant")
                      .add("job", text(p.job))
                      .add("pid", std::int64_t(p.process.identity.pid))
                      .add("epoch", text(order.epoch))
                      .add("waited_us", order.waitedUs)
                      .add("bytes", order.bytes));
}

void Participants::deliver(Participant& p, const tsl_reply& reply) {
  auto& seat = seats_[p.id];
  auto request = seat.waiting;
  endWait(p, false);
  auto* c = seat.connection ? parts_.find(*seat.connection) : nullptr;
  if (c && request != 0) {
    seat.grantedOn = c->id();
    c->reply(request, reply);
    return;
  }
  seat.undelivered = reply;
  startTimer(p.id, parts_.reconnectGrace, [this, id = p.id] {
    auto* p = registry_.participant(id);
    if (p && p->entered && seats_[id].undelivered) giveBack(*p, *p->entered);
  });
}

void Participants::refused(const RefuseOrder& order) {
  auto it = waiting_.find(order.request);
  if (it == waiting_.end()) return;
  auto id = it->second;
  auto& p = *registry_.participant(id);
  auto why = sentenceFor(order);
  parts_.meters.refused(nameOf(order.why.cause));
  parts_.log.info(Line("refuse").add("job", text(p.job)).add("why", why));
  answer(id, seats_[id].waiting, statusOf(order.why.cause), why);
  endWait(p, false);
}

// --- yield --------------------------------------------------------------------------------------

void Participants::yield(Connection& from, std::uint64_t request, const Epoch& epoch) {
  auto* p = at(from, request);
  if (!p) return;
  if (!p->entered) {
    // The answer to the first may have been lost with its connection.
    if (epoch != Epoch{} && epoch == p->yielded) return from.reply(request, TSL_OK, "");
    return from.reply(request, TSL_NOT_ENTERED, whyNotYielded(*p, epoch));
  }
  if (epoch != *p->entered) return from.reply(request, TSL_STALE, whyNotYielded(*p, epoch));
  giveBack(*p, epoch);
  from.reply(request, TSL_OK, "");
  parts_.log.info(Line("yield")
                      .add("job", text(p->job))
                      .add("pid", std::int64_t(p->process.identity.pid))
                      .add("epoch", text(epoch)));
}

std::string Participants::whyNotYielded(const Participant& p, const Epoch& epoch) {
  if (epoch != Epoch{} && epoch == seats_[p.id].ended) {
    return "slice " + text(epoch) + " was ended by an operator, or its turn was missed";
  }
  if (p.entered) return "it yields epoch " + text(epoch) + " and is in " + text(*p.entered);
  return "no slice of this process has begun (it yields epoch " + text(epoch) + ")";
}

// Recorded here first; the master learns it now, or when there is one again.
void Participants::giveBack(Participant& p, const Epoch& epoch) {
  registry_.leave(p, epoch);
  parts_.meters.yielded();
  auto& seat = seats_[p.id];
  seat.asked = false;
  seat.undelivered.reset();
  parts_.roll.then(p.job, [this, id = p.id] { tellYield(id); });
}

void Participants::tellYield(ParticipantId id) {
  auto* p = registry_.participant(id);
  if (!p || !p->untold) return;
  parts_.link.tell([this, id, epoch = *p->untold](wire::NodeSession::Client& session) {
    auto call = session.yieldRequest(capnp::MessageSize{16, 0});
    call.setParticipant(std::uint64_t(id));
    toWire(epoch, call.initEpoch());
    return call.send().then([this, id, epoch](auto&& response) {
      parts_.link.answers().keep(kj::mv(response));
      yieldKnown(id, epoch);
    });
  });
}

// With the session that follows the report the master has taken it.
void Participants::yieldReported(ParticipantId id, const Epoch& epoch) {
  parts_.link.tell([this, id, epoch](wire::NodeSession::Client&) -> kj::Promise<void> {
    yieldKnown(id, epoch);
    return kj::READY_NOW;
  });
}

void Participants::yieldKnown(ParticipantId id, const Epoch& epoch) {
  auto* p = registry_.participant(id);
  if (!p || p->untold != epoch) return;
  p->untold.reset();
  registry_.record(*p);
}

void Participants::sliceEnded(const JobName& name, const Epoch& epoch) {
  if (parts_.ended) parts_.ended(name);
  Job* job = registry_.job(name);
  if (!job) return;
  std::vector<Participant*> out;
  for (auto id : job->participants) {
    auto& p = *registry_.participant(id);
    if (!p.entered || *p.entered > epoch) continue;
    // Ended without its yield: by an operator, or because it missed its turn.
    auto& seat = seats_[id];
    seat.ended = *p.entered;
    seat.asked = false;
    seat.undelivered.reset();
    seat.grantedOn.reset();
    seat.timer = nullptr;  // of the grant that was not delivered
    p.entered.reset();
    out.push_back(&p);
  }
  for (auto* p : out) registry_.record(*p);
}

void Participants::askToYield(const JobName& name, const Epoch& epoch) {
  Job* job = registry_.job(name);
  if (!job) return;
  for (auto id : job->participants) {
    const auto& p = *registry_.participant(id);
    auto& seat = seats_[id];
    if (p.entered != epoch) continue;
    seat.asked = true;
    auto* c = seat.connection ? parts_.find(*seat.connection) : nullptr;
    if (!c) continue;  // told when it is back
    tsl_message message{};
    message.header = {TSL_MAGIC, TSL_VERSION, TSL_ASK_YIELD, 0};
    message.u.reply = sliceReply(epoch);
    message.u.reply.waiters = 1;
    c->send(message);
  }
}

}  // namespace ts::node
