// Whether a Slurm site is set up for time slicing: what the recipes of conf/slurm want, and why.
#pragma once

#include <string>

#include "cli/finding.h"
#include "cli/options.h"
#include "cli/slurm_site.h"

namespace ts::cli {

// `partition`: the one to look at; "": each in which jobs share nodes.
Findings examineSite(const SlurmSite& site, const std::string& partition);

// Asks Slurm, and reads plugstack.conf of this machine. Never throws Failure: what fails is a
// finding.
Findings examineSlurm(const Options& options);

}  // namespace ts::cli
