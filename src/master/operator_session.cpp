#include "master/operator_session.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "master/status.h"
#include "wire/greet.h"

namespace ts {
namespace {

Outcome refused(Cause cause, std::string detail) {
  return {.code = Outcome::Code::Refused, .cause = cause, .detail = std::move(detail)};
}

std::string fullName(const JobRecord& job) {
  return job.name.group + "/" + job.name.name;
}

template <class Results>
kj::Promise<void> answer(Results results, const Outcome& outcome) {
  toWire(outcome, results.initOutcome());
  return kj::READY_NOW;
}

}  // namespace

// With auth "none" nobody is told from anybody.
Seat::Seat(Operators& operators, std::optional<uid_t> uid) : operators_(operators), uid_(uid) {
  if (!uid) return;
  auto most = operators.shell().config().sessionsPerUser;
  auto& taken = operators.sessions_[*uid];
  if (taken >= most)
    kj::throwFatalException(sentence("uid " + std::to_string(*uid) + " has " +
                                     std::to_string(most) +
                                     " sessions at the master, and may have no more: end some, or "
                                     "raise sessions_per_user in master.toml"));
  ++taken;
}

Seat::~Seat() {
  if (uid_ && --operators_.sessions_[*uid_] == 0) operators_.sessions_.erase(*uid_);
}

wire::OperatorSession::Client Operators::open(std::optional<uid_t> uid) {
  bool all = !uid || *uid == 0 || *uid == ::geteuid() ||
             std::ranges::count(shell_.config().operators, *uid) > 0;
  return kj::heap<OperatorSession>(*this, Actor{uid, all});
}

// Who and what is meant. -------------------------------------------------------------------------

JobRecord* OperatorSession::job(const std::string& word, Outcome& why) {
  auto found = shell_.directory().matching(word);
  if (found.size() == 1 && actor_.mayTouch(*found.front())) return found.front();
  if (found.size() == 1) {
    why = refused(Cause::Forbidden, "job " + fullName(*found.front()) + " is of uid " +
                                        std::to_string(found.front()->uid) + ", you are uid " +
                                        std::to_string(*actor_.uid));
    return nullptr;
  }
  std::string detail = "the master knows no job \"" + word + "\"";
  if (!found.empty()) {
    detail = "\"" + word + "\" is the name of several jobs:";
    for (auto* job : found) detail += " " + fullName(*job);
  }
  why = refused(Cause::UnknownParticipant, std::move(detail));
  return nullptr;
}

NodeRecord* OperatorSession::node(const std::string& name, Outcome& why) {
  auto* record = shell_.directory().findNode(name);
  if (record == nullptr)
    why = refused(Cause::UnknownParticipant, "the master knows no node \"" + name + "\"");
  return record;
}

// A group that exists on demand exists while it has jobs: a slip of the keyboard makes none.
bool OperatorSession::knowsGroup(const std::string& name, Outcome& why) const {
  std::set<std::string> known;
  for (const auto& [group, section] : shell_.config().groups) known.insert(group);
  for (const auto& [id, job] : shell_.directory().jobs()) known.insert(job.name.group);
  if (known.count(name) != 0 || operators_.standing().isPaused(name)) return true;
  std::string detail = "no group \"" + name + "\"; known:";
  for (const auto& group : known) detail += (detail.back() == ':' ? " " : ", ") + group;
  if (known.empty()) detail += " none: no section in master.toml, no job";
  why = refused(Cause::UnknownGroup, std::move(detail));
  return false;
}

bool OperatorSession::mayAll(std::string_view what, Outcome& why) const {
  if (actor_.mayAll) return true;
  why = refused(Cause::Forbidden, "uid " + std::to_string(*actor_.uid) + " may not " +
                                      std::string(what) +
                                      ": only root and `operators` of master.toml may");
  return false;
}

// Looking. ---------------------------------------------------------------------------------------

kj::Promise<void> OperatorSession::status(StatusContext context) {
  fillStatus(operators_, actor_, context.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> OperatorSession::why(WhyContext context) {
  auto results = context.getResults();
  Outcome outcome;
  auto* asked = job(text(context.getParams().getJob()), outcome);
  toWire(outcome, results.initOutcome());
  if (asked == nullptr) return kj::READY_NOW;
  std::vector<JobId> all{asked->id};
  if (auto view = shell_.cluster().view(asked->id))
    all.insert(all.end(), view->waitsFor.begin(), view->waitsFor.end());
  fillJobs(shell_, actor_, all, results);
  return kj::READY_NOW;
}

kj::Promise<void> OperatorSession::events(EventsContext context) {
  auto params = context.getParams();
  History::Filter filter;
  if (!actor_.mayAll)
    filter = [own = " uid=" + std::to_string(*actor_.uid)](const std::string& line) {
      auto at = line.find(own);
      return at != std::string::npos &&
             (at + own.size() == line.size() || line[at + own.size()] == ' ');
    };
  context.getResults(capnp::MessageSize{8, 1})
      .setHandle(
          operators_.history().follow(params.getSince(), params.getSink(), std::move(filter)));
  return kj::READY_NOW;
}

// Acting. ----------------------------------------------------------------------------------------

kj::Promise<void> OperatorSession::pauseGroup(PauseGroupContext context) {
  auto params = context.getParams();
  std::string name = text(params.getGroup());
  Outcome outcome;
  if (!mayAll("pause groups", outcome) || !knowsGroup(name, outcome))
    return answer(context.getResults(), outcome);
  return operators_.standing().pause(name, params.getOn()).then([context]() mutable {
    return answer(context.getResults(), Outcome{});
  });
}

kj::Promise<void> OperatorSession::evict(EvictContext context) {
  Outcome outcome;
  if (auto* record = job(text(context.getParams().getJob()), outcome))
    shell_.feed(JobEvicted{record->id, context.getParams().getKill()});
  return answer(context.getResults(), outcome);
}

kj::Promise<void> OperatorSession::clearFault(ClearFaultContext context) {
  Outcome outcome;
  if (auto* record = job(text(context.getParams().getJob()), outcome))
    shell_.feed(FaultCleared{record->id});
  return answer(context.getResults(), outcome);
}

kj::Promise<void> OperatorSession::drain(DrainContext context) {
  Outcome outcome;
  NodeRecord* record = nullptr;
  if (mayAll("drain nodes", outcome)) record = node(text(context.getParams().getNode()), outcome);
  if (record == nullptr) return answer(context.getResults(), outcome);
  return operators_.standing()
      .drain(*record, context.getParams().getOn())
      .then([context]() mutable { return answer(context.getResults(), Outcome{}); });
}

kj::Promise<void> OperatorSession::declareDead(DeclareDeadContext context) {
  Outcome outcome;
  NodeRecord* record = nullptr;
  if (mayAll("declare nodes dead", outcome))
    record = node(text(context.getParams().getNode()), outcome);
  if (record != nullptr && record->state == NodeState::Up)
    outcome = refused(Cause::Busy, "node " + record->name + " is up; drain it, or stop its daemon");
  else if (record != nullptr)
    shell_.died(*record);
  return answer(context.getResults(), outcome);
}

kj::Promise<void> OperatorSession::slurmEnded(SlurmEndedContext context) {
  Outcome outcome;
  auto results = context.getResults();
  if (mayAll("speak for Slurm", outcome)) {
    results.setLeft(unsigned(operators_.slurm().ended(context.getParams().getSlurmJob())));
    results.setGraceUs(std::uint64_t(shell_.config().slurmGrace.count()));
  }
  return answer(results, outcome);
}

}  // namespace ts
