// What Slurm says of itself: the answers of `scontrol show`, as keys and values.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ts::cli {

using SlurmRecord = std::map<std::string, std::string>;

// "" where the key is missing, or Slurm says "(null)".
std::string valueOf(const SlurmRecord& record, const std::string& key);

struct SlurmSite {
  SlurmRecord config;
  std::vector<SlurmRecord> partitions;
  std::vector<SlurmRecord> nodes;
};

// "Key   = value", one a line: `scontrol show config`.
SlurmRecord parseSlurmConfig(const std::string& text);
// "Key=value Key=value ...", one record a line: `scontrol --oneliner show ...`.
std::vector<SlurmRecord> parseSlurmRecords(const std::string& text);

// Runs scontrol, which decides where Slurm is (SLURM_CONF, DNS). Throws Failure.
SlurmSite askSlurm(std::chrono::microseconds timeout);

}  // namespace ts::cli
