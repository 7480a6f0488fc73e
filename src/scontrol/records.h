// The answers of `scontrol show`, as keys and values. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ts {

using SlurmRecord = std::map<std::string, std::string>;

// "" where the key is missing, or Slurm says "(null)".
std::string valueOf(const SlurmRecord& record, const std::string& key);

// "Key   = value", one a line: `scontrol show config`.
SlurmRecord parseSlurmConfig(const std::string& text);
// "Key=value Key=value ...", one record a line: `scontrol --oneliner show ...`.
std::vector<SlurmRecord> parseSlurmRecords(const std::string& text);

}  // namespace ts
