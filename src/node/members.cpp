#include "node/members.h"

#include <algorithm>

#include "node/pedigree.h"
#include "node/slurm_job.h"

namespace ts::node {
namespace {

std::vector<Root> rootsOf(const Registry& registry) {
  std::vector<Root> roots;
  for (const auto& [id, p] : registry.participants()) {
    if (p.joined) roots.push_back({p.job, p.process});
  }
  for (const auto& [id, m] : registry.members()) roots.push_back({m.job, m.process});
  for (const auto& [id, s] : registry.steps()) roots.push_back({s.key, s.daemon});
  return roots;
}

bool isOnDevice(Residency r) {
  return r == Residency::Absent || r == Residency::Resident || r == Residency::Quiet;
}

// Only measured devices say something; what is known of the others stays.
DeviceBytes merged(const DeviceBytes& known, const Seen* seen, const Scan& scan) {
  DeviceBytes out = seen ? seen->bytes : DeviceBytes{};
  for (const auto& [device, n] : known) {
    bool silent = !scan.isMeasured(device) || (seen && seen->unmeasured.contains(device));
    if (silent) out[device] = n;
  }
  return out;
}

// A process that is stopped neither allocates nor frees.
bool hasVanished(const Member& member, const Seen* seen, const Scan& scan) {
  if (member.residency != Residency::Quiet || member.ended) return false;
  return total(merged(member.bytes, seen, scan)) < member.total();
}

// A member whose state is elsewhere keeps its bytes: those of its snapshot.
bool update(Member& member, const Seen* seen, const Scan& scan) {
  if (!isOnDevice(member.residency) || member.ended) return false;
  auto bytes = merged(member.bytes, seen, scan);
  auto residency = member.residency;
  if (residency != Residency::Quiet) {
    residency = bytes.empty() ? Residency::Absent : Residency::Resident;
  }
  if (bytes == member.bytes && residency == member.residency) return false;
  member.bytes = bytes;
  member.residency = residency;
  return true;
}

// Where Slurm has no cgroups its jobs share one: what is near to a step need not be of its job.
bool isOfAnotherSlurmJob(const Registry& registry, const Process& process, const Kinship& kin) {
  if (kin.because == "joined" || kin.because == "child") return false;
  const auto& steps = registry.steps();
  auto step = std::ranges::find_if(steps, [&](const auto& s) { return s.second.key == kin.job; });
  if (step == steps.end()) return false;
  return slurmJobOf(process) != step->second.slurmJob;
}

void addUser(Registry& registry, const Seen& seen, const Scan& scan, const std::vector<Root>& roots,
             const MemberNews& news) {
  auto find = [&](pid_t pid) -> std::optional<Process> {
    auto it = scan.ancestors.find(pid);
    return it == scan.ancestors.end() ? std::nullopt : std::optional(it->second);
  };
  if (seen.process.identity.startTime == 0) return;  // it ended while we looked
  if (seen.bytes.empty()) return;                    // nothing that could be moved is known
  auto kin = jobOf(seen.process, roots, find);
  if (kin && isOfAnotherSlurmJob(registry, seen.process, *kin)) kin.reset();
  Job* known = kin ? registry.job(kin->job) : nullptr;
  if (!known || known->spec.backend == "none" || known->spec.backend == "turns") return;
  Member& member = registry.add({.id = MemberId{registry.newId()},
                                 .job = kin->job,
                                 .process = seen.process,
                                 .residency = Residency::Resident,
                                 .bytes = seen.bytes,
                                 .mps = seen.mps});
  news.seen(member, kin->because);
  news.changed(member);
}

}  // namespace

void applyScan(Registry& registry, const Scan& scan, const MemberNews& news) {
  auto roots = rootsOf(registry);
  for (const auto& seen : scan.users) {
    if (!registry.memberOf(seen.process.identity)) addUser(registry, seen, scan, roots, news);
  }
  std::vector<MemberId> ids;
  for (const auto& [id, m] : registry.members()) ids.push_back(id);
  for (auto id : ids) {
    Member& m = *registry.member(id);
    Job* job = registry.job(m.job);
    if (!job || job->spec.backend == "none") continue;
    const Seen* seen = scan.find(m.process.identity);
    if (seen) m.mps = seen->mps;
    if (hasVanished(m, seen, scan)) {
      news.vanished(m);
      continue;
    }
    if (!update(m, seen, scan)) continue;
    registry.record(m);
    news.changed(m);
  }
}

void applyParticipants(Registry& registry, const JobName& name, const MemberNews& news) {
  Job* job = registry.job(name);
  if (!job || job->spec.backend != "none") return;
  for (auto id : job->participants) {
    const auto& p = *registry.participant(id);
    if (p.departed || !p.joined || registry.memberOf(p.process.identity)) continue;
    Member fresh{.id = MemberId{registry.newId()},
                 .job = name,
                 .process = p.process,
                 .residency = Residency::Resident};
    for (auto d : p.devices) fresh.bytes[d] = 0;
    Member& member = registry.add(std::move(fresh));
    news.seen(member, "joined");
    news.changed(member);
  }
}

}  // namespace ts::node
