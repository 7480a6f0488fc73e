// plugstack.conf, which tells Slurm what plugins to load: whether ours is named in it, and how.
#pragma once

#include "cli/finding.h"
#include "cli/slurm_site.h"

namespace ts::cli {

// `sent`: where slurmd keeps what a configless slurmctld has sent it.
Finding examinePlugstack(const SlurmRecord& config, const std::string& sent = "/run/slurm/conf");

}  // namespace ts::cli
