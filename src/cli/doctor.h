// What works here and what to do about what does not: configuration, node daemon, munge, master.
#pragma once

#include "cli/finding.h"
#include "cli/loop.h"
#include "cli/options.h"

namespace ts::cli {

// Never throws Failure: what fails is a finding.
Findings examine(Loop& loop, const Options& options);

}  // namespace ts::cli
