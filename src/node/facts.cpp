#include "node/facts.h"

namespace ts::node {
namespace {

void setDevices(const std::vector<std::uint32_t>& devices,
                capnp::List<std::uint32_t>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, devices[i]);
}

void setDevice(const DeviceFact& device, wire::DeviceInfo::Builder out) {
  out.setIndex(device.info.index);
  out.setUuid(device.info.uuid);
  out.setName(device.info.name);
  out.setTotalBytes(device.info.totalBytes);
  out.setFreeBytes(device.freeBytes);
}

// Participants that the master has said yes to; others will ask.
std::vector<const Participant*> known(const Job& job, const Registry& registry) {
  std::vector<const Participant*> out;
  for (auto id : job.participants) {
    const auto& p = registry.participants().at(id);
    if (p.joined) out.push_back(&p);
  }
  return out;
}

// Our own name first: the master's word may be older than its knowledge of us.
void setNodes(const std::string& node, const Job& job, wire::JobReport::Builder out) {
  auto others = job.nodes;
  others.erase(node);
  auto list = out.initNodes(unsigned(others.size() + 1));
  list.set(0, node);
  unsigned i = 1;
  for (const auto& other : others) list.set(i++, other);
}

void setJob(const std::string& node, const Job& job, const Registry& registry,
            wire::JobReport::Builder out) {
  toWire(job.spec, out.initSpec());
  auto who = known(job, registry);
  auto participants = out.initParticipants(unsigned(who.size()));
  for (unsigned i = 0; i < participants.size(); ++i) toWire(*who[i], participants[i]);
  auto members = out.initMembers(unsigned(job.members.size()));
  unsigned i = 0;
  for (auto id : job.members) toWire(registry.members().at(id), members[i++]);
  setNodes(node, job, out);
  out.setGathered(ts::toWire(job.gathered));
  out.setGranted(job.grant.has_value());
  if (!job.grant) return;
  toWire(job.grant->epoch, out.initEpoch());
  setDevices(job.grant->devices, out.initGrantedDevices(unsigned(job.grant->devices.size())));
}

void setWithdrawn(const Registry& registry, wire::NodeReport::Builder out) {
  std::vector<ParticipantId> all;
  for (const auto& [id, p] : registry.participants()) {
    if (p.departed && !p.joined) all.push_back(id);
  }
  auto list = out.initWithdrawn(unsigned(all.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, std::uint64_t(all[i]));
}

bool isKnown(const Job& job, const Registry& registry) {
  return !job.members.empty() || !known(job, registry).empty();
}

}  // namespace

MemberFact factOf(const Member& m) {
  MemberFact fact{.member = m.id, .residency = m.residency, .bytes = m.total()};
  for (const auto& [device, n] : m.residue) fact.residue += n;
  for (const auto& [device, n] : m.bytes) fact.devices.push_back({NodeId{}, device});
  fact.unreleased = m.residency == Residency::Saved && m.unreleased;
  return fact;
}

void toWire(const JobSpec& spec, wire::JobSpec::Builder out) {
  toWire(spec.key, out.initKey());
  out.setUid(spec.uid);
  out.setGang(spec.gang);
  out.setPriority(spec.priority);
  out.setKeepBroken(spec.keepBroken);
  out.setBackend(spec.backend);
  out.setSlurmJob(spec.slurmJob);
}

void toWire(const Participant& p, wire::Participant::Builder out) {
  out.setId(std::uint64_t(p.id));
  // One daemon, one participant per process: the participant's number will do for the process.
  out.setProcess(std::uint64_t(p.id));
  out.setPid(p.process.identity.pid);
  setDevices(p.devices, out.initDevices(unsigned(p.devices.size())));
  auto slice = p.entered ? p.entered : p.untold;
  out.setEntered(p.entered.has_value());
  out.setYielded(!p.entered && p.untold.has_value());
  if (slice) toWire(*slice, out.initEpoch());
  out.setWaiting(p.wait.has_value());
  if (!p.wait) return;
  out.setRequest(std::uint64_t(p.wait->request));
  out.initTicket().setGeneration(p.wait->ticketGeneration);
  out.getTicket().setNumber(p.wait->ticketNumber);
}

void toWire(const Member& m, wire::MemberFact::Builder out) {
  toWire(factOf(m), m.process.identity.pid, out);
}

void toWire(const Outcome& outcome, Registry& registry, wire::Outcome::Builder out) {
  ts::toWire(outcome, out);
  for (auto fact : out.getMembers()) {
    if (auto* m = registry.member(MemberId{fact.getMember()})) {
      fact.setPid(m->process.identity.pid);
    }
  }
}

void toWire(const std::string& node, const std::vector<DeviceFact>& devices,
            const Registry& registry, wire::NodeReport::Builder out) {
  auto list = out.initDevices(unsigned(devices.size()));
  for (unsigned i = 0; i < list.size(); ++i) setDevice(devices[i], list[i]);
  unsigned count = 0;
  for (const auto& [name, job] : registry.jobs()) count += isKnown(job, registry);
  auto jobs = out.initJobs(count);
  unsigned i = 0;
  for (const auto& [name, job] : registry.jobs()) {
    if (isKnown(job, registry)) setJob(node, job, registry, jobs[i++]);
  }
  setWithdrawn(registry, out);
}

}  // namespace ts::node
