#include "master/status.h"

#include <capnp/message.h>

#include <algorithm>
#include <map>

#include "core/describe.h"
#include "master/sentences.h"
#include "wire/status_json.h"

namespace ts {
namespace {

void fillNames(Shell& shell, const std::vector<JobId>& jobs,
               capnp::List<capnp::Text>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    auto* job = shell.directory().find(jobs[i]);
    out.set(i, job == nullptr ? "?" : job->name.name.c_str());
  }
}

void fillClaim(Shell& shell, const Devices& claim, wire::JobStatus::Builder out) {
  std::map<NodeId, std::vector<std::uint32_t>> byNode;
  for (const Device& device : claim) byNode[device.node].push_back(device.index);
  auto parts = out.initClaim(unsigned(byNode.size()));
  unsigned i = 0;
  for (const auto& [node, indices] : byNode) {
    parts[i].setNode(shell.directory().node(node).name);
    auto devices = parts[i++].initDevices(unsigned(indices.size()));
    for (unsigned d = 0; d < devices.size(); ++d) devices.set(d, indices[d]);
  }
}

void fillMembers(Shell& shell, const JobView& view, wire::JobStatus::Builder out) {
  auto members = out.initMembers(unsigned(view.members.size()));
  for (unsigned i = 0; i < members.size(); ++i) {
    const MemberView& member = view.members[i];
    members[i].setNode(shell.directory().node(member.node).name);
    auto* record = shell.directory().find(member.member);
    MemberFact fact{.member = MemberId{record == nullptr ? 0 : record->local},
                    .residency = member.residency,
                    .bytes = member.bytes,
                    .devices = member.devices};
    toWire(fact, record == nullptr ? 0 : record->pid, members[i].initFact());
  }
}

std::uint64_t microsecondsSince(Shell& shell, std::optional<Instant> since) {
  return since ? std::uint64_t((shell.now() - *since).count()) : 0;
}

std::string brokenDetail(Shell& shell, const JobRecord& job) {
  std::string lost = job.broken.empty() ? "a process of its gang was lost" : job.broken;
  if (job.options.onBroken == OnBroken::Keep) return lost + "; it is kept: on_broken says so";
  auto grace = shell.section(job.name.group).brokenGrace / std::chrono::milliseconds(1);
  return lost + "; while others wait for its devices it is ended after broken_grace, " +
         std::to_string(grace) + " ms";
}

std::string suspendedDetail(const JobRecord& job) {
  std::string number = std::to_string(job.slurmJob);
  return "Slurm has suspended job " + number +
         ": its processes are stopped, and its state cannot move; scontrol resume " + number;
}

template <class Is>
void fillLate(Shell& shell, Is is, auto builder) {
  std::vector<const OrderBook::Late*> all;
  for (const auto& [operation, late] : shell.orders().late()) {
    if (shell.directory().find(late.job) != nullptr && is(late)) all.push_back(&late);
  }
  if (all.empty()) return;
  auto out = builder.initLate(unsigned(all.size()));
  for (unsigned i = 0; i < out.size(); ++i) {
    const OrderBook::Late& late = *all[i];
    out[i].setNode(shell.directory().node(late.node).name);
    toWire(shell.directory().find(late.job)->name, out[i].initKey());
    out[i].setCall(std::string(late.call));
    auto pids = out[i].initPids(unsigned(late.pids.size()));
    for (unsigned p = 0; p < pids.size(); ++p) pids.set(p, late.pids[p]);
    out[i].setForUs(microsecondsSince(shell, late.since));
  }
}

void fillOwn(Shell& shell, const JobView& view, wire::JobStatus::Builder out) {
  out.setPriority(view.priority);
  out.setParticipants(view.participants);
  out.setEntered(view.entered);
  toWire(view.epoch, out.initEpoch());
  if (view.cause != Cause::None) out.setCause(text(view.cause));
  if (view.fault != FaultKind::None) out.setFault(text(view.fault));
  auto waitsFor = out.initWaitsFor(unsigned(view.waitsFor.size()));
  for (unsigned i = 0; i < waitsFor.size(); ++i)
    if (auto* other = shell.directory().find(view.waitsFor[i])) toWire(other->name, waitsFor[i]);
  bool broken = view.phase == JobPhase::Broken;
  const JobRecord& record = *shell.directory().find(view.job);
  std::string detail =
      broken ? brokenDetail(shell, record) : withNames(shell.directory(), view.detail);
  if (record.suspended) detail = suspendedDetail(record) + (detail.empty() ? "" : "; ") + detail;
  out.setDetail(detail);
  fillClaim(shell, view.claim, out);
  fillMembers(shell, view, out);
  fillLate(
      shell, [&](const auto& late) { return late.job == view.job; }, out);
}

}  // namespace

std::vector<JobId> visibleJobs(Shell& shell, const Actor& actor) {
  std::vector<JobId> ids;
  for (const auto& [id, job] : shell.directory().jobs())
    if (actor.mayTouch(job)) ids.push_back(id);
  std::ranges::sort(ids);
  return ids;
}

void fillJob(Shell& shell, const Actor& actor, JobId job, wire::JobStatus::Builder out) {
  auto* record = shell.directory().find(job);
  auto view = shell.cluster().view(job);
  if (record == nullptr || !view) return;
  toWire(record->name, out.initKey());
  out.setPhase(text(view->phase));
  out.setSinceUs(microsecondsSince(shell, view->since));
  out.setPlace(view->place);
  if (!actor.mayTouch(*record)) return;
  out.setUid(record->uid);
  out.setLabel(record->label);
  fillOwn(shell, *view, out);
}

void fillGroups(Shell& shell, StatusResults results) {
  auto groups = shell.cluster().groups();
  auto out = results.initGroups(unsigned(groups.size()));
  for (unsigned i = 0; i < out.size(); ++i) {
    const GroupView& group = groups[i];
    const std::string& name = shell.directory().name(group.group);
    out[i].setName(name);
    out[i].setPolicy(shell.section(name).policy);
    out[i].setPaused(group.paused);
    fillNames(shell, group.holders, out[i].initHolders(unsigned(group.holders.size())));
    fillNames(shell, group.queue, out[i].initQueue(unsigned(group.queue.size())));
    out[i].setSwitches(group.switches);
  }
}

std::string_view stateWord(const NodeRecord& node) {
  return node.drained && node.state == NodeState::Up ? "drained" : describe(node.state);
}

void fillNodes(Shell& shell, const Actor& actor, StatusResults results) {
  const auto& nodes = shell.directory().nodes();
  auto out = results.initNodes(unsigned(nodes.size()));
  for (unsigned i = 0; i < out.size(); ++i) {
    const NodeRecord& node = *nodes[i];
    out[i].setName(node.name);
    out[i].setState(std::string(stateWord(node)));
    out[i].setAddress(node.address);
    out[i].setJobs(std::uint32_t(node.jobs.size()));
    out[i].setSinceUs(microsecondsSince(shell, node.since));
    auto isHere = [&](const OrderBook::Late& late) {
      return late.node == node.id && actor.mayTouch(*shell.directory().find(late.job));
    };
    fillLate(shell, isHere, out[i]);
    auto devices = out[i].initDevices(unsigned(node.devices.size()));
    for (unsigned d = 0; d < devices.size(); ++d) {
      devices[d].setIndex(node.devices[d].index);
      devices[d].setUuid(node.devices[d].uuid);
      devices[d].setName(node.devices[d].name);
      devices[d].setTotalBytes(node.devices[d].totalBytes);
      devices[d].setFreeBytes(node.devices[d].freeBytes);
    }
  }
}

void fillStatus(Operators& operators, const Actor& actor, StatusResults results) {
  Shell& shell = operators.shell();
  results.setVersion(operators.version());
  toWire(shell.generation(), results.initGeneration());
  results.setUptimeUs(std::uint64_t(operators.uptime().count()));
  fillGroups(shell, results);
  fillJobs(shell, actor, visibleJobs(shell, actor), results);
  fillNodes(shell, actor, results);
}

std::string statusJson(Operators& operators) {
  capnp::MallocMessageBuilder message;
  auto results = message.initRoot<wire::OperatorSession::StatusResults>();
  fillStatus(operators, Actor{.uid = std::nullopt, .mayAll = true}, results);
  return statusText(results.asReader());
}

}  // namespace ts
