#include "node/orders.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "node/causes.h"
#include "node/facts.h"
#include "node/words.h"

namespace ts::node {
namespace {

std::uint64_t number(OperationId id) {
  return std::uint64_t(id);
}

// Nobody is let into a slice that was ended while its members were let go: the master answers them.
Outcome endedBefore(const Epoch& slice, Outcome released) {
  released.code = Outcome::Code::Refused;
  released.cause = Cause::Stale;
  released.detail = "slice " + text(slice) + " was ended before it began";
  return released;
}

// A record that could not be written is nobody's fault, and may succeed when there is room.
Outcome outcomeOf(const kj::Exception& e) {
  bool full = e.getType() == kj::Exception::Type::OVERLOADED;
  return full ? refusal(Cause::NoRecord, sentenceOf(e))
              : failure(Cause::DriverError, sentenceOf(e));
}

// What it throws is its outcome.
Soon<Outcome> tried(const Orders::Run& run) {
  Soon<Outcome> out = Outcome{};
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { out = run(); })) return outcomeOf(*e);
  return out;
}

Soon<Outcome> later(kj::Timer& timer, kj::Duration delay, Orders::Run run) {
  return timer.afterDelay(delay).then([run = std::move(run)] { return run().promise(); });
}

std::uint64_t micros(kj::Duration d) {
  return std::uint64_t(d / kj::MICROSECONDS);
}

bool isGrant(const Orders::Order& order) {
  return order.grants.has_value();
}

}  // namespace

// --- admission ----------------------------------------------------------------------------------

bool Orders::isBusy(const Order& order) const {
  return std::ranges::any_of(running_, [&](const auto& entry) {
    const Order& other = entry.second.order;
    if (!other.moves || other.job != order.job) return false;
    return order.member == MemberId{} || other.member == MemberId{} || other.member == order.member;
  });
}

Outcome Orders::busy(const Order& order) const {
  for (const auto& [serial, running] : running_) {
    if (running.order.job != order.job) continue;
    auto outcome = refusal(
        Cause::Busy, std::string(running.order.verb) + " of " + text(order.job) +
                         processesIn(running.order) + " runs since " +
                         std::to_string(micros(parts_.timer.now() - running.since)) +
                         " us, as operation " + std::to_string(number(running.order.operation)));
    outcome.need = number(running.order.operation);
    return outcome;
  }
  return refusal(Cause::Busy, "a call of the backend for " + text(order.job) + " is under way");
}

// Whom a call of the driver is about now: an order about a whole job hangs in one process of it.
std::vector<Member*> Orders::inCall(const Order& order) const {
  std::vector<Member*> out;
  for (auto* m : parts_.registry.membersOf(order.job)) {
    bool meant = order.member == MemberId{} || order.member == m->id;
    if (meant && parts_.mover.isBusy(m->id)) out.push_back(m);
  }
  return out;
}

std::string Orders::processesIn(const Order& order) const {
  std::string out;
  for (auto* m : inCall(order)) {
    out += (out.empty() ? ", in process " : ", ") + std::to_string(m->process.identity.pid);
  }
  return out.empty() ? out : out + ",";
}

Soon<Outcome> Orders::obey(Order order, Run run) {
  using Kind = Fence::Decision::Kind;
  if (!parts_.registry.job(order.job)) {
    return Outcome{.code = Outcome::Code::Gone,
                   .cause = Cause::TargetGone,
                   .detail = "nothing of job " + text(order.job) + " is on this node"};
  }
  auto known = parts_.fence.look(order.job, order.operation);
  if (known.kind == Kind::Repeated) {
    auto outcome = known.outcome;
    for (auto* m : parts_.registry.membersOf(order.job)) {
      if (!m->ended) outcome.members.push_back(factOf(*m));
    }
    return outcome;
  }
  if (known.kind == Kind::Stale) {
    return refusal(Cause::Stale, "operation " + std::to_string(number(order.operation)) +
                                     " is older than " + std::to_string(number(known.last)) +
                                     ", the last of job " + text(order.job));
  }
  if (known.kind == Kind::Running) {
    if (auto* running = find(order)) running->owed = session_;
    auto outcome = busy(order);
    outcome.need = number(order.operation);
    return outcome;
  }
  if (order.grants && parts_.fence.hasEnded(order.job, order.operation, *order.grants)) {
    return endedBefore(*order.grants, {});
  }
  if (order.moves && isBusy(order)) {
    KJ_IF_MAYBE (before, grantBefore(order)) {
      return before->then([this, order = std::move(order), run = std::move(run)](auto&&) mutable {
        return obey(std::move(order), std::move(run)).promise();
      });
    }
    return busy(order);
  }
  return start(std::move(order), std::move(run));
}

// Who enters a running slice is let in by a grant of its own, which may come on the heels of the
// first.
kj::Maybe<kj::Promise<Outcome>> Orders::grantBefore(const Order& order) {
  if (!isGrant(order)) return nullptr;
  for (auto& [serial, running] : running_) {
    if (running.order.job != order.job || !isGrant(running.order)) continue;
    KJ_IF_MAYBE (done, running.done) return done->addBranch();
  }
  return nullptr;
}

Orders::Running* Orders::find(const Order& order) {
  auto it = std::ranges::find_if(running_, [&](const auto& entry) {
    return entry.second.order.operation == order.operation && entry.second.order.job == order.job;
  });
  return it == running_.end() ? nullptr : &it->second;
}

Soon<Outcome> Orders::start(Order order, Run run) {
  KJ_IF_MAYBE (e,
               kj::runCatchingExceptions([&] { parts_.fence.admit(order.job, order.operation); })) {
    if (isGrant(order)) parts_.bookings.drop(order.job);  // as if it had been obeyed: see grant()
    if (!order.givesBack) return outcomeOf(*e);
  }
  if (parts_.log.enabled(Level::Debug)) {
    parts_.log.debug(
        Line(order.verb).add("job", text(order.job)).add("operation", number(order.operation)));
  }
  auto serial = ++serial_;
  auto& running = running_[serial];
  running.order = std::move(order);
  running.generation = parts_.registry.generation();
  running.since = parts_.timer.now();
  auto work = parts_.delay > 0 * kj::SECONDS ? later(parts_.timer, parts_.delay, std::move(run))
                                             : tried(run);
  if (work.isHere()) return ended(serial, work.take());
  return goOn(serial, std::move(work).promise());
}

kj::Promise<Outcome> Orders::goOn(std::uint64_t serial, kj::Promise<Outcome> work) {
  auto& running = running_.at(serial);
  bool isWatched = running.order.limit > 0 * kj::SECONDS;
  auto late = isWatched ? watch(serial) : kj::Promise<Outcome>(kj::NEVER_DONE);
  auto done =
      work.catch_([](kj::Exception&& e) { return outcomeOf(e); })
          .then([this, serial](Outcome outcome) { return ended(serial, std::move(outcome)); })
          .fork();
  // Goes on when the caller's connection breaks: nothing that moves state is abandoned.
  tasks_.add(done.addBranch().ignoreResult());
  auto answer = isWatched ? done.addBranch().exclusiveJoin(kj::mv(late)) : done.addBranch();
  running.done = kj::mv(done);
  return answer;
}

Outcome Orders::ended(std::uint64_t serial, Outcome outcome) {
  auto running = running_.extract(serial);
  Running& r = running.mapped();
  auto id = r.order.operation;
  bool isOurs = r.generation == parts_.registry.generation();
  if (isOurs) record(r.order, outcome);
  parts_.meters.ended(r.order.verb, outcome, micros(parts_.timer.now() - r.since));
  bool well = outcome.ok() || outcome.code == Outcome::Code::Refused;
  if (!well || parts_.log.enabled(Level::Debug)) {
    auto line = Line("order-ended");
    line.add("order", r.order.verb)
        .add("job", text(r.order.job))
        .add("operation", number(id))
        .add("took_us", micros(parts_.timer.now() - r.since))
        .add("bytes", outcome.bytes);
    if (!outcome.ok()) line.add("why", sentenceFor(outcome));
    well ? parts_.log.debug(line) : parts_.log.warning(line);
  }
  // Who waits for either, the end or the limit, gets this; dropping it unfulfilled would win the
  // race.
  if (r.late) r.late->fulfill(Outcome(outcome));
  // Whoever lost its connection meanwhile repeats the order and is answered from the record.
  if (isOurs && r.owed == session_) tellFinished(id, outcome);
  // Between the report and the session that follows it, too: the master has heard "in mid-move".
  if (r.order.moves && (!isOurs || !parts_.link.isUp())) tellMembers(r.order.job);
  return outcome;
}

// Without its end in the record the order is obeyed anew by a later life of the daemon.
void Orders::record(const Order& order, const Outcome& outcome) {
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] {
                 parts_.fence.finished(order.job, order.operation, outcome, order.ends);
               })) {
    parts_.log.error(Line("no-record").add("job", text(order.job)).add("why", sentenceOf(*e)));
  }
}

// --- sessions -----------------------------------------------------------------------------------

void Orders::sessionBegan(const Generation& generation) {
  if (generation == parts_.registry.generation()) return;
  parts_.fence.newGeneration();  // first: who is killed in between does both anew
  parts_.registry.setGeneration(generation);
  parts_.bookings.clear();
}

void Orders::tellFinished(OperationId id, const Outcome& outcome) {
  parts_.link.tell([this, id, outcome](wire::NodeSession::Client& session) {
    auto call = session.finishedRequest();
    call.setOperation(number(id));
    toWire(outcome, parts_.registry, call.initOutcome());
    return call.send().ignoreResult();
  });
}

// A master that has heard of them in mid-move, by an order that is not its own, waits for this.
void Orders::tellMembers(const JobName& job) {
  for (auto* m : parts_.registry.membersOf(job)) {
    if (!m->ended) parts_.tellMember(m->id);
  }
}

// Nothing is killed in mid-call: past its deadline the order is answered, and awaited in the
// background.
kj::Promise<Outcome> Orders::watch(std::uint64_t serial) {
  auto& running = running_.at(serial);
  auto paf = kj::newPromiseAndFulfiller<Outcome>();
  running.late = kj::mv(paf.fulfiller);
  running.watchdog = parts_.timer.afterDelay(running.order.limit)
                         .then([this, serial] { runsLate(serial); })
                         .eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); });
  return kj::mv(paf.promise);
}

void Orders::runsLate(std::uint64_t serial) {
  auto& running = running_.at(serial);
  running.overdue = true;
  running.owed = session_;
  parts_.meters.overdue(running.order.verb);
  auto since = micros(parts_.timer.now() - running.since);
  auto processes = processesIn(running.order);
  auto answer = refusal(Cause::Overdue, std::string(running.order.verb) + " of " +
                                            text(running.order.job) + processes + " runs since " +
                                            std::to_string(since) + " us and goes on");
  for (auto* m : inCall(running.order)) answer.members.push_back(factOf(*m));
  parts_.log.warning(Line("overdue")
                         .add("order", running.order.verb)
                         .add("job", text(running.order.job))
                         .add("operation", number(running.order.operation))
                         .add("running_us", since)
                         .add("why", answer.detail));
  running.late->fulfill(std::move(answer));
}

std::vector<std::string> Orders::overdue() const {
  std::vector<std::string> out;
  for (const auto& [id, r] : running_) {
    if (!r.overdue) continue;
    out.push_back(std::string(r.order.verb) + " of " + text(r.order.job) + processesIn(r.order) +
                  " runs for " + std::to_string(micros(parts_.timer.now() - r.since) / 1000000) +
                  " s; tsctl evict --kill " + text(r.order.job) + " ends it");
  }
  return out;
}

void Orders::taskFailed(kj::Exception&& exception) {
  parts_.log.error(Line("order-failed").add("why", sentenceOf(exception)));
}

// --- grants -------------------------------------------------------------------------------------

Outcome Orders::deviceTaken(const GrantOrder& order) const {
  for (auto device : order.devices) {
    const JobName* holder = parts_.registry.grantedTo(device);
    if (holder && *holder != order.job) {
      return refusal(Cause::Blocked, "device " + std::to_string(device) + " is granted to " +
                                         text(*holder) + ", not to be granted to " +
                                         text(order.job));
    }
    if (order.epoch < parts_.registry.highest(device)) {
      return refusal(Cause::Stale, "epoch " + text(order.epoch) + " is older than " +
                                       text(parts_.registry.highest(device)) +
                                       ", the last on device " + std::to_string(device));
    }
  }
  return {};
}

Soon<Outcome> Orders::grant(const GrantOrder& order) {
  parts_.bookings.drop(order.job);  // whatever becomes of it: the master counts on that
  auto taken = deviceTaken(order);
  if (!taken.ok()) return taken;
  parts_.registry.setGrant(order.job, {order.epoch, order.devices});
  return parts_.mover.release(order.job).then([this, order](Outcome outcome) {
    // What cannot be unlocked is not entered: the master says what becomes of the job.
    if (!outcome.ok()) return outcome;
    if (order.requests.empty()) return outcome;
    if (isOver(order)) return endedBefore(order.epoch, std::move(outcome));
    parts_.participants.granted(order);
    return outcome;
  });
}

bool Orders::isOver(const GrantOrder& order) const {
  const Job* job = parts_.registry.job(order.job);
  return !job || !job->grant || job->grant->epoch != order.epoch;
}

Outcome Orders::endSlice(const JobName& job, const Epoch& epoch) {
  Job* j = parts_.registry.job(job);
  if (!j->grant || j->grant->epoch > epoch) return {};  // another has been granted since
  // Both, whatever of it can be written down: a later life of the daemon is told it again.
  auto unwritten = kj::runCatchingExceptions([&] { parts_.participants.sliceEnded(job, epoch); });
  parts_.registry.clearGrant(job);
  KJ_IF_MAYBE (e, unwritten) kj::throwFatalException(kj::mv(*e));
  return {};
}

// --- kill ---------------------------------------------------------------------------------------

Soon<Outcome> Orders::kill(JobName job, std::string why) {
  // A job in the middle of a call that hangs is ended all the same.
  bool clear = parts_.saveBeforeKill && !parts_.mover.isBusy(job);
  auto before = clear ? clearBeforeKill(job) : kj::Promise<void>(kj::READY_NOW);
  return before.then([this, job, why] { return signalAll(job, why); });
}

// On some drivers the death of a process that was restored takes the machine down, unless its state
// is off the device first.
kj::Promise<void> Orders::clearBeforeKill(JobName job) {
  auto resting = parts_.mover.quiesce(job, kClearingQuiesce);
  return atMost(kClearingQuiesce * 3 / 2, kj::mv(resting)).then([this, job] {
    kj::Vector<kj::Promise<void>> saves;
    for (auto* m : parts_.registry.membersOf(job)) {
      if (m->ended || m->residency != Residency::Quiet) continue;
      saves.add(atMost(parts_.saveDeadline, parts_.mover.save(job, m->id)));
    }
    return kj::joinPromises(saves.releaseAsArray());
  });
}

// The work goes on beyond the limit, and is no longer waited for.
kj::Promise<void> Orders::atMost(kj::Duration limit, Soon<Outcome> work) {
  auto done = std::move(work).promise().ignoreResult().fork();
  tasks_.add(done.addBranch());
  return done.addBranch().exclusiveJoin(parts_.timer.afterDelay(limit));
}

Outcome Orders::signalAll(const JobName& job, const std::string& why) {
  Job* j = parts_.registry.job(job);
  if (!j) return {};
  std::set<Identity> targets;
  for (auto id : j->members) targets.insert(parts_.registry.member(id)->process.identity);
  for (auto id : j->participants) {
    targets.insert(parts_.registry.participant(id)->process.identity);
  }
  std::string failed;
  for (const auto& target : targets) {
    int error = signal(target);
    auto words = error == 0 ? "" : std::string(std::strerror(error));
    if (error != 0) failed += (failed.empty() ? "" : ", ") + text(target) + ": " + words;
    parts_.log.warning(Line("kill")
                           .add("job", text(job))
                           .add("pid", std::int64_t(target.pid))
                           .add("why", why)
                           .add("error", words));
  }
  if (failed.empty()) return {};
  return failure(Cause::DriverError, "kill of " + text(job) + " did not reach " + failed);
}

// 0 or errno; who has ended needs no signal.
int Orders::signal(const Identity& target) {
  auto process = parts_.watch.held(target);
  if (!process) process = hold(target);  // perhaps it could not be watched
  int error = process ? parts_.signal(process->pidfd(), SIGKILL) : 0;
  return error == ESRCH ? 0 : error;
}

}  // namespace ts::node
