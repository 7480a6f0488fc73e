// How a job, an epoch, a process and a "no" are put into words, everywhere in the node.
#pragma once

#include <string>

#include "node/process.h"
#include "wire/translate.h"

namespace ts::node {

using ts::text;
std::string text(const JobName& job);   // "rl/a"
std::string text(const Epoch& epoch);   // "3.17": generation and counter
std::string text(const Identity& who);  // "pid 17"

// The answer is no, and nothing has changed.
Outcome refusal(Cause cause, std::string detail);
// It was tried and did not work.
Outcome failure(Cause cause, std::string detail);

}  // namespace ts::node
