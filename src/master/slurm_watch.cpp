#include "master/slurm_watch.h"

#include <algorithm>
#include <utility>

#include "wire/greet.h"

namespace ts {
namespace {

kj::Duration toKj(Duration d) {
  return d.count() * kj::MICROSECONDS;
}

Line line(const char* verb, const JobRecord& job) {
  return std::move(Line(verb)
                       .add("job", job.name.group + "/" + job.name.name)
                       .add("slurm_job", std::uint64_t(job.slurmJob)));
}

}  // namespace

SlurmWatch::SlurmWatch(kj::Timer& timer, Shell& shell, Ask ask)
    : timer_(timer), shell_(shell), ask_(std::move(ask)), tasks_(*this) {
  shell_.whenAmiss([this] { this->ask(); });
  // Nodes that hold jobs of an earlier life of this master have come by then.
  tasks_.add(timer_.afterDelay(toKj(shell_.config().recoveryGrace)).then([this] {
    this->ask();
    return round();
  }));
}

kj::Promise<void> SlurmWatch::round() {
  return timer_.afterDelay(toKj(shell_.config().slurmPeriod)).then([this] {
    if (isWorthIt()) ask();
    return round();
  });
}

// While steps are refused no job of Slurm's may be here to ask after.
bool SlurmWatch::isWorthIt() {
  Question q = question();
  return !trouble_.empty() || !shell_.whyNoSteps().empty() || !q.jobs.empty() ||
         !q.suspects.empty();
}

SlurmWatch::Question SlurmWatch::question() {
  Question q;
  for (const auto& [id, job] : shell_.directory().jobs())
    if (job.slurmJob != 0) q.jobs.push_back(id);
  for (const NodeRecord* node : shell_.directory().nodes())
    if (node->state == NodeState::Suspect) q.suspects.push_back(node->id);
  return q;
}

void SlurmWatch::ask() {
  if (!shell_.config().slurm) return forget();
  again_ = asking_;
  if (asking_) return;
  asking_ = true;
  tasks_.add(ask_().then([this, q = question()](const SlurmWord& word) {
    asking_ = false;
    heard(q, word);
    if (std::exchange(again_, false)) ask();
  }));
}

// What it said is nobody's word any more when it is not to be asked.
void SlurmWatch::forget() {
  trouble_.clear();
  heardRules("");
  for (JobId id : question().jobs) suspended(*shell_.directory().find(id), false);
}

void SlurmWatch::heard(const Question& question, const SlurmWord& word) {
  tellTrouble(word.why);
  if (!word.why.empty()) return;
  heardRules(word.preempts);
  auto isGone = [&](JobId id) { return shell_.directory().find(id) == nullptr; };
  std::erase_if(over_, isGone);
  std::erase_if(unknown_, isGone);
  for (JobId job : question.jobs) conclude(job, word);
  for (NodeId id : question.suspects) {
    NodeRecord& node = shell_.directory().node(id);
    if (node.state != NodeState::Suspect || !word.down.contains(node.name)) continue;
    shell_.events().log().warning(Line("slurm-node-down").add("node", node.name));
    shell_.died(node);
  }
}

void SlurmWatch::heardRules(const std::string& preempts) {
  std::string why;
  if (!preempts.empty())
    why = "PreemptMode=" + preempts +
          " of slurm.conf stops jobs in turn, also the one whose turn it is: the site sets "
          "PreemptMode=OFF and restarts slurmctld";
  if (why == shell_.whyNoSteps()) return;
  shell_.events().log().warning(Line("slurm-rules").add("refused", why));
  shell_.refuseSteps(why);
}

void SlurmWatch::conclude(JobId id, const SlurmWord& word) {
  auto* job = shell_.directory().find(id);
  if (job == nullptr) return;
  // Of nodes that this Slurm has never heard of it says nothing either: it may be another
  // cluster's.
  bool ours = std::ranges::any_of(job->on, [&](NodeId node) {
    return word.nodes.contains(shell_.directory().node(node).name);
  });
  if (!ours) return tellUnknown(*job);
  if (!word.isThere(job->slurmJob)) return over(id, "Slurm has it no more");
  suspended(*job, word.jobs.at(job->slurmJob) == SlurmWord::Job::Suspended);
}

// Once: if it is this Slurm's nevertheless, nobody ends what it leaves behind.
void SlurmWatch::tellUnknown(const JobRecord& job) {
  if (job.on.empty() || !unknown_.insert(job.id).second) return;
  shell_.events().log().warning(
      line("slurm-unknown-node", job)
          .add("node", shell_.directory().node(*job.on.begin()).name)
          .add("why",
               "this Slurm has no node of that name: where it is one of its nodes, `name` in "
               "node.toml is to be its NodeName"));
}

// Once: what a node that is away has of it ends when the node comes back.
void SlurmWatch::over(JobId id, const char* because) {
  auto* job = shell_.directory().find(id);
  if (job == nullptr || !over_.insert(id).second) return;
  shell_.events().log().warning(line("slurm-ended", *job).add("why", because));
  shell_.feed(JobEvicted{id, true});
}

void SlurmWatch::suspended(JobRecord& job, bool is) {
  if (job.suspended == is) return;
  job.suspended = is;
  Log& log = shell_.events().log();
  is ? log.warning(line("slurm-suspended", job)) : log.info(line("slurm-resumed", job));
}

std::size_t SlurmWatch::ended(std::uint32_t slurmJob) {
  std::vector<JobId> left;
  for (const auto& [id, job] : shell_.directory().jobs())
    if (slurmJob != 0 && job.slurmJob == slurmJob) left.push_back(id);
  if (left.empty()) return 0;
  tasks_.add(timer_.afterDelay(toKj(shell_.config().slurmGrace)).then([this, left] {
    for (JobId id : left) over(id, "its epilog was long ago");
  }));
  ask();
  return left.size();
}

// When it changes.
void SlurmWatch::tellTrouble(const std::string& why) {
  if (why == trouble_) return;
  trouble_ = why;
  if (why.empty())
    shell_.events().log().info(Line("slurm-heard"));
  else
    shell_.events().log().warning(Line("slurm-unheard").add("why", why));
}

void SlurmWatch::taskFailed(kj::Exception&& exception) {
  asking_ = false;
  shell_.events().log().error(Line("slurm-watch-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts
