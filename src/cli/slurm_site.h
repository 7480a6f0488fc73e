// What Slurm says of a whole site, for doctor.
#pragma once

#include <chrono>
#include <vector>

#include "scontrol/records.h"

namespace ts::cli {

struct SlurmSite {
  SlurmRecord config;
  std::vector<SlurmRecord> partitions;
  std::vector<SlurmRecord> nodes;
};

// Runs scontrol, which decides where Slurm is (SLURM_CONF, DNS). Throws Failure.
SlurmSite askSlurm(std::chrono::microseconds timeout);

}  // namespace ts::cli
