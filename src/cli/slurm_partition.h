// One partition of a Slurm site with its nodes, and what is wrong with it for time slicing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/finding.h"
#include "cli/slurm_site.h"

namespace ts::cli {

// "FORCE:2": jobs that share a node without having asked. Slurm's own default is 4.
struct Sharing {
  std::string how;  // NO, YES, FORCE, EXCLUSIVE
  std::uint64_t jobs = 1;
};
Sharing sharingOf(const SlurmRecord& partition);

// Of "gpu:a100:8(S:0-1),tslot:2"; 0 where the name is missing.
std::uint64_t countOfGres(const SlurmRecord& node, const std::string& name);

struct SlurmVersion {
  int major = 0, minor = 0;
  auto operator<=>(const SlurmVersion&) const = default;
};
SlurmVersion versionOf(const SlurmSite& site);

class SlurmPartition {
public:
  SlurmPartition(const SlurmSite& site, const SlurmRecord& record);

  bool hasNodesWith(const std::string& gres) const;
  Findings examine() const;

private:
  void examineSharing(Findings& out) const;
  void examinePreemption(Findings& out) const;
  void examineNeighbours(Findings& out) const;
  void examineGres(Findings& out) const;
  void examineSlots(Findings& out) const;
  void examineShards(Findings& out) const;
  void examineMemory(Findings& out) const;

  template <typename Wrong>
  std::string nodesThat(Wrong wrong) const;
  std::string parameters() const;
  std::string defaultMemory(const std::string& key) const;

  const SlurmSite& site_;
  const SlurmRecord& record_;
  std::string name_;
  Sharing sharing_;
  std::vector<const SlurmRecord*> nodes_;
};

}  // namespace ts::cli
