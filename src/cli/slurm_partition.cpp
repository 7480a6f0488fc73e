#include "cli/slurm_partition.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "cli/words.h"

namespace ts::cli {
namespace {

constexpr SlurmVersion kManyShards{23, 11};

std::uint64_t numberAt(std::string_view text, std::uint64_t otherwise = 0) {
  std::uint64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

bool has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

std::string several(std::vector<std::string> names) {
  constexpr std::size_t kShown = 3;
  std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return joined(names) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

}  // namespace

Sharing sharingOf(const SlurmRecord& partition) {
  std::string text = valueOf(partition, "OverSubscribe");
  auto colon = text.find(':');
  Sharing sharing{.how = text.substr(0, colon)};
  if (colon != std::string::npos) sharing.jobs = numberAt(text.substr(colon + 1), 1);
  return sharing;
}

std::uint64_t countOfGres(const SlurmRecord& node, const std::string& name) {
  std::uint64_t sum = 0;
  for (std::string each : split(valueOf(node, "Gres"), ',')) {
    each = each.substr(0, each.find('('));
    if (each.substr(0, each.find(':')) != name) continue;
    auto colon = each.rfind(':');
    sum += colon == std::string::npos ? 1 : numberAt(each.substr(colon + 1), 1);
  }
  return sum;
}

SlurmVersion versionOf(const SlurmSite& site) {
  auto parts = split(valueOf(site.config, "SLURM_VERSION"), '.');
  if (parts.size() < 2) return {};
  return {int(numberAt(parts[0])), int(numberAt(parts[1]))};
}

SlurmPartition::SlurmPartition(const SlurmSite& site, const SlurmRecord& record)
    : site_(site),
      record_(record),
      name_(valueOf(record, "PartitionName")),
      sharing_(sharingOf(record)) {
  for (const SlurmRecord& node : site.nodes) {
    if (std::ranges::count(split(valueOf(node, "Partitions"), ','), name_) > 0)
      nodes_.push_back(&node);
  }
}

template <typename Wrong>
std::string SlurmPartition::nodesThat(Wrong wrong) const {
  std::vector<std::string> names;
  for (const SlurmRecord* node : nodes_) {
    if (wrong(*node)) names.push_back(valueOf(*node, "NodeName"));
  }
  return several(names);
}

bool SlurmPartition::hasNodesWith(const std::string& gres) const {
  return std::ranges::any_of(nodes_,
                             [&](const SlurmRecord* n) { return countOfGres(*n, gres) > 0; });
}

// A partition may say otherwise than the site.
std::string SlurmPartition::parameters() const {
  std::string own = valueOf(record_, "SelectTypeParameters");
  return own.empty() || own == "NONE" ? valueOf(site_.config, "SelectTypeParameters") : own;
}

std::string SlurmPartition::defaultMemory(const std::string& key) const {
  std::string own = valueOf(record_, key);
  std::string found = own.empty() || own == "UNLIMITED" ? valueOf(site_.config, key) : own;
  return found == "UNLIMITED" ? "" : found;
}

Findings SlurmPartition::examine() const {
  Findings out;
  if (nodes_.empty()) {
    return {{Verdict::Fail, "partition " + name_ + " has no nodes",
             "name them: PartitionName=" + name_ + " Nodes=..."}};
  }
  examineSharing(out);
  examinePreemption(out);
  examineNeighbours(out);
  examineGres(out);
  examineMemory(out);
  return out;
}

void SlurmPartition::examineSharing(Findings& out) const {
  std::string said = valueOf(record_, "OverSubscribe");
  std::string cure =
      "PartitionName=" + name_ + " OverSubscribe=FORCE:2, or as many jobs as shall share";
  if (sharing_.how == "FORCE" && sharing_.jobs > 1) {
    out.push_back({Verdict::Ok,
                   "partition " + name_ + ": up to " + std::to_string(sharing_.jobs) +
                       " jobs share its " + counted(nodes_.size(), "node"),
                   ""});
  } else if (sharing_.how == "YES" && sharing_.jobs > 1) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": OverSubscribe=" + said +
                       " lets only jobs share that say --oversubscribe, and keeps all others out",
                   cure});
  } else {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": OverSubscribe=" + said +
                       ": a second job waits until the first has ended",
                   cure});
  }
}

// With gang scheduling for the site, jobs of a partition that says OFF do not run beside each
// other: on 22.05 the second is not started, on 24.11 they are stopped in turn.
void SlurmPartition::examinePreemption(Findings& out) const {
  std::string mode = valueOf(record_, "PreemptMode");
  std::string site = valueOf(site_.config, "PreemptMode");
  if (has(mode, "SUSPEND") || has(mode, "GANG")) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": PreemptMode=" + mode +
                       " stops jobs with SIGSTOP, also the one whose turn it is",
                   "PreemptMode=OFF for the partition and for the site"});
  } else if (has(site, "GANG")) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": PreemptMode=" + site +
                       " of the site keeps its jobs apart: a second one waits until the first has "
                       "ended, or is"
                       " stopped with SIGSTOP while that runs, whoever has the turn",
                   "PreemptMode=OFF for the site, or a mode without GANG"});
  }
}

void SlurmPartition::examineNeighbours(Findings& out) const {
  auto shared = [](const SlurmRecord& node) { return has(valueOf(node, "Partitions"), ","); };
  std::string names = nodesThat(shared);
  if (names.empty()) return;
  out.push_back({Verdict::Fail,
                 "partition " + name_ + ": nodes in other partitions, too (" + names +
                     "): jobs there use GPUs that somebody has the turn on",
                 "let the nodes of " + name_ + " be in no other partition"});
}

void SlurmPartition::examineGres(Findings& out) const {
  bool slots = hasNodesWith("tslot"), shards = hasNodesWith("shard");
  if (slots) examineSlots(out);
  if (shards) examineShards(out);
  if (slots || shards) return;
  out.push_back({Verdict::Warn, "partition " + name_ + ": nothing counts the jobs that share a GPU",
                 "Gres=tslot:" + std::to_string(std::max<std::uint64_t>(sharing_.jobs, 2)) +
                     " for its nodes, as in examples/slurm/tslot"});
}

void SlurmPartition::examineSlots(Findings& out) const {
  auto other = [this](const SlurmRecord& node) {
    return countOfGres(node, "tslot") != sharing_.jobs;
  };
  auto gpus = [](const SlurmRecord& node) { return countOfGres(node, "gpu") > 0; };
  if (std::string names = nodesThat(other); !names.empty() && sharing_.jobs > 1) {
    out.push_back({Verdict::Warn,
                   "partition " + name_ + ": nodes with another number of tslot than the " +
                       std::to_string(sharing_.jobs) + " of OverSubscribe (" + names + ")",
                   "the smaller one counts; Gres=tslot:" + std::to_string(sharing_.jobs)});
  }
  std::string names = nodesThat(gpus);
  if (names.empty()) return;
  bool constrained = valueOf(site_.config, "ConstrainDevices") == "yes";
  out.push_back(
      {constrained ? Verdict::Fail : Verdict::Warn,
       "partition " + name_ + ": nodes with tslot and gpu (" + names + ")" +
           (constrained ? ": with ConstrainDevices=yes a job that asks for tslot opens no GPU"
                        : ": a job that asks for gpu gets one that somebody has the turn on"),
       "take gpu out of Gres and gres.conf of these nodes"});
}

void SlurmPartition::examineShards(Findings& out) const {
  if (versionOf(site_) < kManyShards) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": shards on Slurm " +
                       valueOf(site_.config, "SLURM_VERSION") +
                       ", where a job gets shards of one GPU only",
                   "Slurm 23.11 or later, or tslot as in examples/slurm/tslot"});
  } else if (!has(parameters(), "MULTIPLE_SHARING_GRES_PJ")) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": SelectTypeParameters is " + parameters() +
                       ": a job gets shards of one GPU only",
                   "add MULTIPLE_SHARING_GRES_PJ"});
  }
  auto other = [this](const SlurmRecord& node) {
    return countOfGres(node, "shard") != sharing_.jobs * countOfGres(node, "gpu");
  };
  std::string names = nodesThat(other);
  if (names.empty()) return;
  out.push_back({Verdict::Warn,
                 "partition " + name_ + ": nodes with another number of shards than " +
                     std::to_string(sharing_.jobs) + " for each GPU (" + names + ")",
                 "shard:N with N = GPUs times the jobs that share one"});
}

void SlurmPartition::examineMemory(Findings& out) const {
  if (!has(parameters(), "MEMORY")) {
    out.push_back({Verdict::Warn,
                   "partition " + name_ + ": SelectTypeParameters is " + parameters() +
                       ": nobody counts memory, and what waiting jobs have saved may fill a node",
                   "SelectTypeParameters=CR_Core_Memory"});
    return;
  }
  std::string perNode = defaultMemory("DefMemPerNode");
  if (perNode.empty() && defaultMemory("DefMemPerCPU").empty() &&
      defaultMemory("DefMemPerGPU").empty()) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ +
                       ": no DefMemPerNode: a job that names no --mem takes all memory "
                       "of its nodes, and no other runs there",
                   "DefMemPerNode of at most RealMemory / " + std::to_string(sharing_.jobs)});
    return;
  }
  auto tight = [&](const SlurmRecord& node) {
    return numberAt(perNode) * sharing_.jobs > numberAt(valueOf(node, "RealMemory"));
  };
  if (std::string names = nodesThat(tight); !names.empty()) {
    out.push_back({Verdict::Fail,
                   "partition " + name_ + ": DefMemPerNode=" + perNode + " times " +
                       std::to_string(sharing_.jobs) + " is more than RealMemory of " + names,
                   "DefMemPerNode of at most RealMemory / " + std::to_string(sharing_.jobs)});
  }
}

}  // namespace ts::cli
