#include "scontrol/slurm_word.h"

#include <array>
#include <sstream>
#include <string_view>
#include <vector>

#include "scontrol/program_output.h"
#include "scontrol/records.h"

namespace ts {
namespace {

// A state that is none of these may be one of a job that runs.
constexpr std::array kNothingRuns{"PENDING",   "REQUEUED",  "REQUEUE_HOLD",  "REQUEUE_FED",
                                  "REVOKED",   "COMPLETED", "CANCELLED",     "FAILED",
                                  "TIMEOUT",   "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE",
                                  "BOOT_FAIL", "PREEMPTED", "SPECIAL_EXIT"};

SlurmWord::Job standOf(std::string_view state) {
  for (std::string_view quiet : kNothingRuns)
    if (state == quiet) return SlurmWord::Job::Queued;
  return state == "SUSPENDED" ? SlurmWord::Job::Suspended : SlurmWord::Job::Running;
}

// Its standard output, or nothing and `why`.
std::string heard(const std::vector<std::string>& words, const std::string& conf,
                  std::chrono::microseconds timeout, std::string& why) {
  std::vector<std::string> variables;
  if (!conf.empty()) variables.push_back("SLURM_CONF=" + conf);
  ProgramOutput said = outputOf(words, timeout, variables);
  if (!said.why.empty()) {
    why = words.front() + ": " + said.why;
  } else if (said.exit != 0) {
    why = words.front() + " ended with " + std::to_string(said.exit) + ": " +
          said.err.substr(0, said.err.find('\n'));
  }
  return why.empty() ? said.out : "";
}

}  // namespace

bool SlurmWord::isThere(std::uint32_t job) const {
  auto it = jobs.find(job);
  return it != jobs.end() && it->second != Job::Queued;
}

void parseQueue(const std::string& text, SlurmWord& into) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint32_t number = 0;
    std::string state, more;
    if (!(words >> number >> state) || words >> more) {
      into.why = "squeue said \"" + line + "\", which is no job and its state";
      return;
    }
    into.jobs[number] = standOf(state);
  }
}

void parseNodes(const std::string& text, SlurmWord& into) {
  for (const SlurmRecord& record : parseSlurmRecords(text)) {
    std::string name = valueOf(record, "NodeName");
    into.nodes.insert(name);
    if (valueOf(record, "State").starts_with("DOWN")) into.down.insert(name);
  }
}

void parseRules(const std::string& text, SlurmWord& into) {
  SlurmRecord config = parseSlurmConfig(text);
  std::string hidden = valueOf(config, "PrivateData");
  if (hidden.find("jobs") != std::string::npos || hidden.find("nodes") != std::string::npos)
    into.why = "PrivateData=" + hidden + " of slurm.conf hides jobs or nodes from this user";
  std::string preempts = valueOf(config, "PreemptMode");
  if (preempts.find("GANG") != std::string::npos) into.preempts = preempts;
}

SlurmWord askSlurm(const std::string& conf, std::chrono::microseconds timeout) {
  SlurmWord word;
  auto rules = heard({"scontrol", "show", "config"}, conf, timeout, word.why);
  if (word.why.empty()) parseRules(rules, word);
  if (!word.why.empty()) return word;
  auto nodes = heard({"scontrol", "--all", "--oneliner", "show", "node"}, conf, timeout, word.why);
  if (!word.why.empty()) return word;
  parseNodes(nodes, word);
  auto queue = heard({"squeue", "--all", "--noheader", "--format=%A %T"}, conf, timeout, word.why);
  if (word.why.empty()) parseQueue(queue, word);
  return word;
}

}  // namespace ts
