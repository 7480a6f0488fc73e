#include "cli/slurm_doctor.h"

#include <algorithm>
#include <charconv>

#include "cli/failure.h"
#include "cli/plugstack.h"
#include "cli/slurm_partition.h"
#include "timeslice/timeslice.h"

namespace ts::cli {
namespace {

constexpr SlurmVersion kOldest{22, 5};
// The longer of save_deadline and restore_deadline, and half as long again.
constexpr int kLongestMove = 180;

Finding examineVersion(const SlurmSite& site) {
  std::string version = valueOf(site.config, "SLURM_VERSION");
  if (versionOf(site) < kOldest) {
    return {Verdict::Warn, "Slurm " + version + ": nothing here is tested with it",
            "Slurm 22.05 or later"};
  }
  return {Verdict::Ok, "Slurm " + version + ", cluster " + valueOf(site.config, "ClusterName"), ""};
}

void examineSelect(const SlurmSite& site, Findings& out) {
  std::string type = valueOf(site.config, "SelectType");
  if (type == "select/cons_tres") return;
  out.push_back({Verdict::Warn,
                 "SelectType is " + type + ": the recipes are tested with select/cons_tres",
                 "SelectType=select/cons_tres, and a restart of Slurm's daemons"});
}

void examineTracking(const SlurmSite& site, Findings& out) {
  std::string type = valueOf(site.config, "ProctrackType");
  if (type == "proctrack/cgroup") return;
  out.push_back({Verdict::Warn,
                 "ProctrackType is " + type +
                     ": a process that leaves its parents is not known to be of the job",
                 "ProctrackType=proctrack/cgroup"});
}

void examineProlog(const SlurmSite& site, Findings& out) {
  std::string flags = valueOf(site.config, "PrologFlags");
  // Contain and X11 bring Alloc along.
  for (const char* flag : {"Alloc", "Contain", "X11"}) {
    if (flags.find(flag) != std::string::npos) return;
  }
  out.push_back(
      {Verdict::Warn,
       "PrologFlags has no Alloc: a node on which no step runs hears of a job at its end only",
       "PrologFlags=Alloc"});
}

void examineBadExit(const SlurmSite& site, Findings& out) {
  if (valueOf(site.config, "KillOnBadExit") != "0") return;
  out.push_back({Verdict::Warn,
                 "KillOnBadExit is 0: when one task of a step fails, the others stay, and a gang "
                 "waits for it",
                 "KillOnBadExit=1"});
}

void examineEnd(const SlurmSite& site, Findings& out) {
  std::string text = valueOf(site.config, "UnkillableStepTimeout");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (seconds >= kLongestMove) return;
  out.push_back(
      {Verdict::Warn,
       "UnkillableStepTimeout is " + text +
           ": Slurm drains the node when a job is cancelled while its state moves",
       "UnkillableStepTimeout=300, or save_deadline of node.toml and half as long again"});
}

std::vector<SlurmPartition> partitionsOf(const SlurmSite& site, const std::string& wanted) {
  std::vector<SlurmPartition> chosen;
  for (const SlurmRecord& record : site.partitions) {
    SlurmPartition partition(site, record);
    Sharing sharing = sharingOf(record);
    bool shares = (sharing.how == "FORCE" && sharing.jobs > 1) || partition.hasNodesWith("tslot") ||
                  partition.hasNodesWith("shard");
    if (wanted.empty() ? shares : valueOf(record, "PartitionName") == wanted)
      chosen.push_back(std::move(partition));
  }
  return chosen;
}

Finding noPartition(const std::string& wanted) {
  if (!wanted.empty())
    return {Verdict::Fail, "no partition is called " + wanted, "scontrol show partition"};
  return {Verdict::Fail, "in no partition jobs share nodes: all wait for each other's end",
          "one as in examples/slurm/tslot, with OverSubscribe=FORCE:2"};
}

}  // namespace

Findings examineSite(const SlurmSite& site, const std::string& partition) {
  Findings findings{examineVersion(site)};
  examineSelect(site, findings);
  examineTracking(site, findings);
  examineProlog(site, findings);
  examineBadExit(site, findings);
  examineEnd(site, findings);
  auto partitions = partitionsOf(site, partition);
  if (partitions.empty()) findings.push_back(noPartition(partition));
  for (const SlurmPartition& each : partitions) {
    for (Finding& finding : each.examine()) findings.push_back(std::move(finding));
  }
  return findings;
}

Findings examineSlurm(const Options& options) {
  Findings findings{{Verdict::Ok, std::string("tsctl ") + ts_version(), ""}};
  try {
    SlurmSite site = askSlurm(options.timeout);
    for (Finding& finding : examineSite(site, options.partition))
      findings.push_back(std::move(finding));
    findings.push_back(examinePlugstack(site.config));
  } catch (const Failure& failure) {
    findings.push_back(failed(failure));
  }
  return findings;
}

}  // namespace ts::cli
