#include "node/steps.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "node/causes.h"
#include "node/doctor.h"
#include "node/facts.h"
#include "node/pedigree.h"
#include "node/slurm_job.h"
#include "node/words.h"

namespace ts::node {
namespace {

constexpr std::uint32_t kLastWithTasks = 0xfffffff0;  // Slurm's; above are scripts and the like

std::string stepName(const Step& s) {
  return "step " + std::to_string(s.slurmStep) + " of Slurm job " + std::to_string(s.slurmJob);
}

std::string seconds(std::uint64_t us) {
  auto tenths = (us + 50'000) / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

bool uses(const Seen& seen, const std::vector<std::uint32_t>& devices) {
  return std::ranges::any_of(
      devices, [&](auto d) { return seen.bytes.contains(d) || seen.unmeasured.contains(d); });
}

}  // namespace

// --- a step begins
// --------------------------------------------------------------------------------

void Steps::begin(Connection& from, std::uint64_t request, StepRequest what) {
  auto work = decide(what).exclusiveJoin(tooLate(what));
  tasks_.add(work.then([this, connection = from.id(), request,
                        what](const Answer& answer) { decided(connection, request, what, answer); },
                       [this, connection = from.id(), request](kj::Exception&& e) {
                         if (auto* c = parts_.find(connection))
                           c->reply(request, TSL_INTERNAL, sentenceOf(e));
                       }));
}

kj::Promise<Steps::Answer> Steps::decide(StepRequest what) {
  return findOthers(what).then([this, what](Outcome others) -> kj::Promise<Answer> {
    if (!others.ok()) return Answer{std::move(others), ""};
    return whenUp().then([this, what] { return askMaster(what); });
  });
}

// Jobs that take turns cannot take them with one that does not.
kj::Promise<Outcome> Steps::findOthers(const StepRequest& what) {
  if (what.spec.backend == "none" || what.spec.backend == "turns") return Outcome{};
  return parts_.roll.look().then([this, what](const Scan& scan) -> Outcome {
    for (const auto& seen : scan.users) {
      if (!uses(seen, what.step.devices)) continue;
      if (parts_.registry.memberOf(seen.process.identity)) continue;
      auto pid = seen.process.identity.pid;
      auto other = slurmJobOf(seen.process);
      if (!other || *other == what.step.slurmJob) continue;
      return refusal(Cause::DeviceOwned,
                     "Slurm job " + std::to_string(*other) +
                         " uses a device of its claim outside "
                         "any group (process " +
                         std::to_string(pid) + " on node " + parts_.node +
                         "): jobs that slice need nodes, or a partition, of their own");
    }
    return {};
  });
}

kj::Promise<Steps::Answer> Steps::askMaster(const StepRequest& what) {
  auto asking = parts_.link.session().admitRequest();
  toWire(what.spec, asking.initSpec());
  auto devices = asking.initDevices(unsigned(what.step.devices.size()));
  for (unsigned i = 0; i < devices.size(); ++i) devices.set(i, what.step.devices[i]);
  return asking.send().then([](auto&& response) {
    Answer answer{fromWire(response.getOutcome(), NodeId{}), ""};
    for (auto line : response.getEnvironment()) answer.environment += text(line) + "\n";
    return answer;
  });
}

kj::Promise<Steps::Answer> Steps::tooLate(const StepRequest& what) {
  return parts_.timer.afterDelay(what.patience).then([this]() -> Answer {
    if (!parts_.link.isUp()) return {refusal(Cause::NodeSuspect, parts_.link.whyDown()), ""};
    return {refusal(Cause::Overdue, "neither the devices of node " + parts_.node +
                                        " nor the master have answered in time"),
            ""};
  });
}

kj::Promise<void> Steps::whenUp() {
  if (parts_.link.isUp()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void Steps::linkSettled() {
  if (!parts_.link.isUp()) return;
  for (auto& one : waiting_) one->fulfill();
  waiting_.clear();
}

void Steps::decided(ConnectionId connection, std::uint64_t request, const StepRequest& what,
                    const Answer& answer) {
  auto* c = parts_.find(connection);
  if (!c) return;
  const auto& key = what.step.key;
  if (!answer.outcome.ok()) {
    auto why = sentenceFor(answer.outcome);
    parts_.log.info(Line("step-refused").add("job", text(key)).add("why", why));
    bool away = answer.outcome.cause == Cause::NodeSuspect && !parts_.link.isUp();
    auto status = away ? TSL_MASTER_DOWN : statusOf(answer.outcome.cause);
    return c->reply(request, status, why);
  }
  if (!parts_.watch.add(what.step.daemon.identity)) return;  // its slurmstepd has ended
  parts_.registry.add(what.step);
  parts_.registry.record(key, {.slurmJob = what.step.slurmJob, .slurmStep = what.step.slurmStep});
  parts_.log.info(Line("step")
                      .add("job", text(key))
                      .add("slurm_job", std::uint64_t(what.step.slurmJob))
                      .add("uid", std::int64_t(what.spec.uid))
                      .add("devices", std::uint64_t(what.step.devices.size())));
  auto variables = devicesLine(what.step) + answer.environment;
  tsl_reply r{};
  r.status = TSL_OK;
  r.bytes = variables.size();
  c->reply(request, r, textAsFile(variables));
}

// By what does not change with what a process may open.
std::string Steps::devicesLine(const Step& step) const {
  std::string list;
  for (const auto& d : parts_.devices) {
    if (std::ranges::find(step.devices, d.index) == step.devices.end()) continue;
    list += (list.empty() ? "" : ",") + (d.uuid.empty() ? std::to_string(d.index) : d.uuid);
  }
  return "TIMESLICE_DEVICES=" + list + "\n";
}

// --- and ends
// -------------------------------------------------------------------------------------

void Steps::end(Connection& from, std::uint64_t request, std::uint32_t job, std::uint32_t step) {
  for (const auto& s : parts_.registry.stepsOf(job)) {
    if (step == TSL_ALL_STEPS || s.slurmStep == step) over(s, "its step has ended");
  }
  from.reply(request, TSL_OK, "");
}

void Steps::processEnded(const Identity& identity) {
  auto it = parts_.registry.steps().find(identity);
  if (it == parts_.registry.steps().end()) return;
  auto step = it->second;
  parts_.log.warning(
      Line("step-lost").add("job", text(step.key)).add("slurmstepd", std::int64_t(identity.pid)));
  over(step, "its slurmstepd was killed");
}

void Steps::adopt() {
  std::vector<Identity> all;
  for (const auto& [identity, s] : parts_.registry.steps()) all.push_back(identity);
  for (const auto& identity : all) {
    if (!parts_.watch.add(identity)) processEnded(identity);
  }
}

// Slurm has ended what it knew of. What it did not must not hold a turn.
void Steps::over(const Step& step, const char* why) {
  parts_.registry.eraseStep(step.daemon.identity);
  if (parts_.registry.stepOf(step.key) != nullptr) return;
  sliceEnded(step.key);
  parts_.log.info(Line("step-ended")
                      .add("job", text(step.key))
                      .add("turns", accountOf(step.slurmJob, step.slurmStep)));
  if (parts_.registry.stepsOf(step.slurmJob).empty()) parts_.registry.eraseAccounts(step.slurmJob);
  auto ended = endProcesses(step.key);
  if (ended == 0) return;
  parts_.log.warning(Line("step-survivors")
                         .add("job", text(step.key))
                         .add("killed", std::uint64_t(ended))
                         .add("why", stepName(step) + ": " + why));
}

unsigned Steps::endProcesses(const JobName& name) {
  Job* job = parts_.registry.job(name);
  if (!job) return 0;
  std::set<Identity> all;
  for (auto id : job->participants) {
    const auto& p = *parts_.registry.participant(id);
    if (!p.departed) all.insert(p.process.identity);
  }
  for (auto* m : parts_.registry.membersOf(name)) {
    if (!m->ended) all.insert(m->process.identity);
  }
  unsigned ended = 0;
  for (const auto& identity : all) {
    auto held = parts_.watch.held(identity);
    if (held && parts_.signal(held->pidfd(), SIGKILL) == 0) ++ended;
  }
  return ended;
}

// --- what it had
// ----------------------------------------------------------------------------------

std::uint32_t Steps::slurmJobFor(const JobSpec& spec) const {
  const auto* step = parts_.registry.stepOf(spec.key);
  return step != nullptr && step->uid == spec.uid ? step->slurmJob : 0;
}

void Steps::granted(const GrantOrder& order) {
  const auto* known = parts_.registry.account(order.job);
  if (known == nullptr || known->epoch == order.epoch) return;
  auto a = *known;
  close(a);
  a.epoch = order.epoch;
  ++a.turns;
  a.waitedUs += order.waitedUs;
  a.bytes += order.bytes;
  a.sinceUs = nowUs();
  parts_.registry.record(order.job, a);
}

void Steps::sliceEnded(const JobName& job) {
  const auto* known = parts_.registry.account(job);
  if (known == nullptr || known->sinceUs == 0) return;
  auto a = *known;
  close(a);
  parts_.registry.record(job, a);
}

void Steps::close(StepAccount& account) const {
  if (account.sinceUs != 0) account.heldUs += nowUs() - account.sinceUs;
  account.sinceUs = 0;
}

// The same for a later life of the daemon.
std::uint64_t Steps::nowUs() const {
  return std::uint64_t((parts_.timer.now() - kj::origin<kj::TimePoint>()) / kj::MICROSECONDS);
}

// A batch script ends after all steps that it starts.
std::string Steps::accountOf(std::uint32_t job, std::uint32_t step) const {
  bool isScript = step > kLastWithTasks;
  StepAccount sum;
  for (const auto* one : parts_.registry.accountsOf(job)) {
    if (one->slurmStep != step && !isScript) continue;
    auto a = *one;
    close(a);
    sum.turns += a.turns;
    sum.waitedUs += a.waitedUs;
    sum.bytes += a.bytes;
    sum.heldUs += a.heldUs;
  }
  if (sum.turns == 0) return "";
  return std::to_string(sum.turns) + (sum.turns == 1 ? " turn" : " turns") + ", waited " +
         seconds(sum.waitedUs) + ", held " + seconds(sum.heldUs) + ", moved " +
         mebibytes(sum.bytes);
}

void Steps::account(Connection& from, std::uint64_t request, std::uint32_t job,
                    std::uint32_t step) {
  from.reply(request, TSL_OK, accountOf(job, step));
}

// --- the gate
// -------------------------------------------------------------------------------------

void Steps::outlook(Connection& from, std::uint64_t request, const JobName& job) {
  if (!parts_.link.isUp()) return from.reply(request, TSL_MASTER_DOWN, parts_.link.whyDown());
  auto asking = parts_.link.session().outlookRequest();
  asking.initKey().setGroup(job.group);
  asking.getKey().setName(job.name);
  tasks_.add(asking.send().then(
      [this, connection = from.id(), request](auto&& response) {
        auto* c = parts_.find(connection);
        if (!c) return;
        tsl_reply r{};
        r.status = TSL_OK;
        r.waiters = response.getBefore();
        r.bytes = response.getMissing();
        auto words = printable(text(response.getText()));
        std::memcpy(r.detail, words.data(), std::min(words.size(), sizeof(r.detail) - 1));
        c->reply(request, r);
      },
      [this, connection = from.id(), request](kj::Exception&& e) {
        if (auto* c = parts_.find(connection)) c->reply(request, TSL_MASTER_DOWN, sentenceOf(e));
      }));
}

void Steps::taskFailed(kj::Exception&& exception) {
  parts_.log.error(Line("step-task-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts::node
