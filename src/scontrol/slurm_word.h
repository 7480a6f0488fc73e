// What Slurm says now of its jobs and nodes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ts {

struct SlurmWord {
  // Queued: it has not begun, or is to begin again: nothing of it runs.
  enum class Job { Queued, Running, Suspended };

  std::map<std::uint32_t, Job> jobs;  // that are not over, with those that are completing
  std::set<std::string> nodes;        // all that it knows
  std::set<std::string> down;         // of these: nothing of its runs there
  std::string preempts;               // its PreemptMode, where jobs are stopped in turn
  std::string why;                    // why nothing can be concluded; "": all of it was heard

  bool isThere(std::uint32_t job) const;
};

// `squeue --format "%A %T"`; a line that is nothing like it is a `why`, for those that follow are
// not known. Pure.
void parseQueue(const std::string& text, SlurmWord& into);
// The records of nodes. Pure.
void parseNodes(const std::string& text, SlurmWord& into);
// Whether the configuration lets anybody see all jobs, and how it pre-empts. Pure.
void parseRules(const std::string& text, SlurmWord& into);

// Runs squeue and scontrol, found in PATH; `conf` is the site's slurm.conf, "": they know where it
// is. Blocks, each of the three at most for `timeout`.
SlurmWord askSlurm(const std::string& conf, std::chrono::microseconds timeout);

}  // namespace ts
