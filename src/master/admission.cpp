#include "master/admission.h"

#include <algorithm>

#include "config/name.h"
#include "master/sentences.h"

namespace ts {
namespace {

Outcome refused(Cause cause, std::string detail) {
  return {.code = Outcome::Code::Refused, .cause = cause, .detail = std::move(detail)};
}

using Indices = capnp::List<std::uint32_t>::Reader;

Outcome checkDevices(const NodeRecord& node, Indices devices) {
  for (std::uint32_t index : devices)
    if (std::ranges::none_of(node.devices, [&](const auto& d) { return d.index == index; }))
      return refused(Cause::NoClaim, "node " + node.name + " has no device " +
                                         std::to_string(index) + ", only " +
                                         std::to_string(node.devices.size()));
  return {};
}

Outcome checkNames(const JobName& name) {
  if (isName(name.group) && isName(name.name)) return {};
  return refused(Cause::UnknownGroup, "\"" + name.group + "/" + name.name +
                                          "\" is no name: 1 to 63 of [A-Za-z0-9._-] each");
}

Outcome checkUser(const Shell& shell, const JobName& name, uid_t uid) {
  const auto& users = shell.section(name.group).users;
  if (uid == 0 || users.empty() || std::ranges::count(users, uid) > 0) return {};
  return refused(Cause::Forbidden, "uid " + std::to_string(uid) + " may not use group \"" +
                                       name.group + "\"; see its `users` in master.toml");
}

Outcome unknownGroup(const JobName& name) {
  return refused(Cause::UnknownGroup, "the master knows no group \"" + name.group +
                                          "\"; add [group." + name.group +
                                          "] to master.toml or set any_group = true");
}

// Last: a group that exists on demand is made here.
Outcome checkGroup(Shell& shell, const JobName& name) {
  return shell.group(name.group) != nullptr ? Outcome{} : unknownGroup(name);
}

Outcome checkJob(const JobRecord& job, wire::JobSpec::Reader spec) {
  std::string name = "job " + job.name.group + "/" + job.name.name;
  if (job.uid != spec.getUid() && spec.getUid() != 0)
    return refused(Cause::Forbidden, name + " is of uid " + std::to_string(job.uid) +
                                         ", not of uid " + std::to_string(spec.getUid()));
  if (job.options.gang != spec.getGang())
    return refused(Cause::Unsupported, name + " has gang = " + std::to_string(job.options.gang) +
                                           ", this process joins with " +
                                           std::to_string(spec.getGang()));
  return {};
}

Outcome checkPriority(std::int32_t priority) {
  if (priority >= -kMaxPriority && priority <= kMaxPriority) return {};
  return refused(Cause::Unsupported, "priority " + std::to_string(priority) +
                                         " is out of range: " + std::to_string(-kMaxPriority) +
                                         " to " + std::to_string(kMaxPriority));
}

Outcome checkWishes(const Shell& shell, const NodeRecord& node, wire::JobSpec::Reader spec,
                    Indices devices) {
  JobName name = fromWire(spec.getKey());
  if (Outcome o = checkNames(name); !o.ok()) return o;
  if (Outcome o = checkPriority(spec.getPriority()); !o.ok()) return o;
  if (Outcome o = checkUser(shell, name, spec.getUid()); !o.ok()) return o;
  return checkDevices(node, devices);
}

Outcome check(Shell& shell, NodeRecord& node, wire::JobSpec::Reader spec,
              wire::Participant::Reader participant) {
  JobName name = fromWire(spec.getKey());
  if (Outcome o = checkWishes(shell, node, spec, participant.getDevices()); !o.ok()) return o;
  if (shell.directory().findParticipant(node, participant.getId()) != nullptr)
    return refused(Cause::AlreadyEntered, "participant " + std::to_string(participant.getId()) +
                                              " of node " + node.name + " has joined already");
  auto* job = shell.directory().find(name);
  return job == nullptr ? checkGroup(shell, name) : checkJob(*job, spec);
}

// A device belongs to one group: the core refuses a join that finds it otherwise.
Outcome checkOwners(Shell& shell, const NodeRecord& node, const JobName& name, Indices devices) {
  for (std::uint32_t index : devices) {
    auto claimant = shell.cluster().claimant({node.id, index});
    auto* other = claimant ? shell.directory().find(*claimant) : nullptr;
    if (other == nullptr || other->name.group == name.group) continue;
    return refused(Cause::DeviceOwned, "device " + std::to_string(index) + " of node " + node.name +
                                           " is claimed by job " + other->name.group + "/" +
                                           other->name.name +
                                           ", and a device belongs to one group");
  }
  return {};
}

// As it was before the core said no.
Outcome undone(Shell& shell, JobRecord& job, ParticipantRecord& participant, const Notice& why) {
  NodeRecord& node = *participant.node;
  shell.directory().remove(participant);
  std::string detail = withNames(shell.directory(), why.detail);
  if (detail.empty())
    detail = "job " + job.name.group + "/" + job.name.name + " cannot take turns there";
  if (job.participants == 0 && job.members == 0) shell.endedOn(node, job);
  return refused(why.cause, std::move(detail));
}

}  // namespace

Outcome join(Shell& shell, NodeRecord& node, wire::JobSpec::Reader spec,
             wire::Participant::Reader participant) {
  if (Outcome o = check(shell, node, spec, participant); !o.ok()) return o;
  shell.takeJoinRefusal();
  JobRecord& job = declared(shell, spec, {node.id}, false);
  ParticipantRecord& record = joined(shell, node, job, participant);
  if (auto why = shell.takeJoinRefusal()) return undone(shell, job, record, *why);
  return {};
}

Outcome admissible(Shell& shell, NodeRecord& node, wire::JobSpec::Reader spec, Indices devices) {
  JobName name = fromWire(spec.getKey());
  if (const auto& why = shell.whyNoSteps(); !why.empty()) return refused(Cause::Unsupported, why);
  if (Outcome o = checkWishes(shell, node, spec, devices); !o.ok()) return o;
  auto* job = shell.directory().find(name);
  if (job != nullptr) {
    if (Outcome o = checkJob(*job, spec); !o.ok()) return o;
  } else if (!shell.knowsGroup(name.group)) {
    return unknownGroup(name);
  }
  return checkOwners(shell, node, name, devices);
}

JobRecord& declared(Shell& shell, wire::JobSpec::Reader spec, std::vector<NodeId> nodes,
                    bool gathered) {
  JobName name = fromWire(spec.getKey());
  auto* known = shell.directory().find(name);
  // A job that a node reports exists, whatever has become of its group's section meanwhile.
  if (known == nullptr && shell.group(name.group) == nullptr) shell.adoptGroup(name.group);
  JobRecord& job =
      known != nullptr ? *known : shell.directory().add(name, spec.getUid(), optionsFromWire(spec));
  if (spec.getSlurmJob() != 0) job.slurmJob = spec.getSlurmJob();
  shell.feed(JobDeclared{job.id, job.group, job.options, std::move(nodes), gathered});
  return job;
}

ParticipantRecord& joined(Shell& shell, NodeRecord& node, JobRecord& job,
                          wire::Participant::Reader participant) {
  Directory& directory = shell.directory();
  auto* known = directory.findParticipant(node, participant.getId());
  auto& record = known != nullptr ? *known
                                  : directory.addParticipant(node, participant.getId(), job,
                                                             participant.getProcess());
  record.pid = participant.getPid();
  shell.feed(ParticipantJoined{.participant = record.id,
                               .job = job.id,
                               .node = node.id,
                               .process = directory.process(record),
                               .devices = devicesFromWire(participant.getDevices(), node.id)});
  return record;
}

}  // namespace ts
