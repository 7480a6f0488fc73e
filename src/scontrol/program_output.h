// Runs a program to its end and keeps what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ts {

struct ProgramOutput {
  int exit = -1;  // 128 + N if signal N ended it
  std::string out;
  std::string err;
  std::string why;  // "" if it ran to its end, else why not
};

// Found in PATH, told to speak English, and nothing of how whoever started us likes Slurm's answers
// (SQUEUE_*, SLURM_* but SLURM_CONF); `more` are variables of its own, NAME=VALUE. One that takes
// longer than `timeout` is killed.
ProgramOutput outputOf(const std::vector<std::string>& words, std::chrono::microseconds timeout,
                       const std::vector<std::string>& more = {});

}  // namespace ts
