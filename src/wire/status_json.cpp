#include "wire/status_json.h"

#include <capnp/schema.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/describe.h"
#include "wire/translate.h"

namespace ts {
namespace {

using Json = nlohmann::ordered_json;

double seconds(std::uint64_t us) {
  return double(us) / 1e6;
}

// The schema's own word: "resident".
template <class Enum>
std::string nameOf(Enum value) {
  auto names = capnp::Schema::from<Enum>().getEnumerants();
  auto index = static_cast<std::uint16_t>(value);
  if (index >= names.size()) return "unknown " + std::to_string(index);
  return text(names[index].getProto().getName());
}

template <class List>
Json texts(List list) {
  Json all = Json::array();
  for (auto item : list) all.push_back(text(item));
  return all;
}

template <class List>
Json numbers(List list) {
  Json all = Json::array();
  for (auto item : list) all.push_back(item);
  return all;
}

}  // namespace

// Not in the unnamed namespace: there they would hide the overloads of the header.
static Json toJson(wire::MemberFact::Reader fact) {
  return {{"member", fact.getMember()},
          {"pid", fact.getPid()},
          {"residency", nameOf(fact.getResidency())},
          {"bytes", fact.getBytes()},
          {"residue", fact.getResidue()},
          {"unreleased", fact.getUnreleased()},
          {"devices", numbers(fact.getDevices())}};
}

static Json toJson(wire::MemberStatus::Reader member) {
  Json json = toJson(member.getFact());
  json["node"] = text(member.getNode());
  return json;
}

static Json toJson(wire::LateCall::Reader late) {
  return {{"node", text(late.getNode())},
          {"job", textOf(late.getKey())},
          {"call", text(late.getCall())},
          {"pids", numbers(late.getPids())},
          {"for_s", seconds(late.getForUs())}};
}

static Json toJson(wire::JobStatus::ClaimPart::Reader part) {
  return {{"node", text(part.getNode())}, {"devices", numbers(part.getDevices())}};
}

static Json toJson(wire::DeviceInfo::Reader device) {
  return {{"index", device.getIndex()},
          {"uuid", text(device.getUuid())},
          {"name", text(device.getName())},
          {"total_bytes", device.getTotalBytes()},
          {"free_bytes", device.getFreeBytes()}};
}

static Json toJson(wire::Epoch::Reader epoch) {
  return {{"generation", epoch.getGeneration()}, {"counter", epoch.getCounter()}};
}

static Json toJson(wire::Generation::Reader generation) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(generation.getId()));
  return {{"number", generation.getNumber()}, {"id", id}};
}

template <class List>
Json objects(List list) {
  Json all = Json::array();
  for (auto item : list) all.push_back(toJson(item));
  return all;
}

static Json waitsFor(wire::JobStatus::Reader job) {
  Json all = Json::array();
  for (auto key : job.getWaitsFor()) all.push_back(textOf(key));
  return all;
}

static bool hasSince(wire::JobStatus::Reader job) {
  auto phase = text(job.getPhase());
  return job.getPlace() > 0 || phase == "waiting" || phase == "switching" || phase == "holding" ||
         phase == "faulted" || phase == "broken";
}

std::string textOf(wire::JobKey::Reader key) {
  return text(key.getGroup()) + "/" + text(key.getName());
}

std::string statusText(wire::OperatorSession::StatusResults::Reader status) {
  return textOf(toJson(status));
}

std::string textOf(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json toJson(wire::GroupStatus::Reader group) {
  return {{"name", text(group.getName())},    {"policy", text(group.getPolicy())},
          {"paused", group.getPaused()},      {"holders", texts(group.getHolders())},
          {"queue", texts(group.getQueue())}, {"switches", group.getSwitches()}};
}

Json toJson(wire::JobStatus::Reader job) {
  return {{"group", text(job.getKey().getGroup())},
          {"name", text(job.getKey().getName())},
          {"uid", job.getUid()},
          {"phase", text(job.getPhase())},
          {"label", text(job.getLabel())},
          {"priority", job.getPriority()},
          {"participants", job.getParticipants()},
          {"entered", job.getEntered()},
          {"epoch", toJson(job.getEpoch())},
          {"since_s", hasSince(job) ? Json(seconds(job.getSinceUs())) : Json(nullptr)},
          {"place", job.getPlace()},
          {"cause", text(job.getCause())},
          {"fault", text(job.getFault())},
          {"waits_for", waitsFor(job)},
          {"detail", text(job.getDetail())},
          {"claim", objects(job.getClaim())},
          {"members", objects(job.getMembers())},
          {"late", objects(job.getLate())}};
}

Json toJson(wire::NodeStatus::Reader node) {
  return {{"name", text(node.getName())},
          {"state", text(node.getState())},
          {"address", text(node.getAddress())},
          {"since_s", seconds(node.getSinceUs())},
          {"jobs", node.getJobs()},
          {"devices", objects(node.getDevices())},
          {"late", objects(node.getLate())}};
}

Json toJson(wire::OperatorSession::StatusResults::Reader status) {
  return {
      {"version", text(status.getVersion())},      {"generation", toJson(status.getGeneration())},
      {"uptime_s", seconds(status.getUptimeUs())}, {"groups", objects(status.getGroups())},
      {"jobs", objects(status.getJobs())},         {"nodes", objects(status.getNodes())}};
}

Json toJson(wire::EventLine::Reader line) {
  return {{"at_s", seconds(line.getUnixUs())},
          {"verb", text(line.getVerb())},
          {"line", text(line.getText())}};
}

Json toJson(wire::Outcome::Reader outcome) {
  return {{"code", nameOf(outcome.getCode())},
          {"cause", text(causeFromWire(outcome.getCause()))},
          {"need", outcome.getNeed()},
          {"free", outcome.getFree()},
          {"detail", text(outcome.getDetail())}};
}

}  // namespace ts
