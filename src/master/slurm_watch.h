// Slurm's word, told to the core: jobs of which it knows that they are over, nodes that it has
// lost. Asked when something is amiss, and now and then; never on the way of a grant.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "master/shell.h"
#include "scontrol/slurm_word.h"

namespace ts {

class SlurmWatch final : private kj::TaskSet::ErrorHandler {
public:
  // Asks Slurm, on a worker.
  using Ask = std::function<kj::Promise<SlurmWord>()>;
  SlurmWatch(kj::Timer& timer, Shell& shell, Ask ask);

  // As soon as the question that is open has been answered. Nothing without `slurm` in master.toml.
  void ask();
  // Slurm ends this job, says its epilog. What is left of it after slurm_grace is killed. How many
  // jobs of ours there are of it now.
  std::size_t ended(std::uint32_t slurmJob);

private:
  // What was here when the question was put: of what came later its answer says nothing.
  struct Question {
    std::vector<JobId> jobs;
    std::vector<NodeId> suspects;
  };

  kj::Promise<void> round();
  bool isWorthIt();
  Question question();
  void forget();
  void heard(const Question& question, const SlurmWord& word);
  void heardRules(const std::string& preempts);
  void conclude(JobId job, const SlurmWord& word);
  void tellTrouble(const std::string& why);
  void tellUnknown(const JobRecord& job);
  void over(JobId job, const char* because);
  void suspended(JobRecord& job, bool is);
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer_;
  Shell& shell_;
  Ask ask_;
  bool asking_ = false;
  bool again_ = false;
  std::string trouble_;   // why it said nothing, the last time
  std::set<JobId> over_;  // that it was told of already
  std::set<JobId> unknown_;
  kj::TaskSet tasks_;
};

}  // namespace ts
