// plugstack.conf, which tells Slurm what plugins to load: whether ours is named in it, and how.
#pragma once

#include "cli/finding.h"
#include "cli/slurm_site.h"

namespace ts::cli {

Finding examinePlugstack(const SlurmRecord& config);

}  // namespace ts::cli
