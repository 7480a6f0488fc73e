#include "wire/translate.h"

#include <algorithm>

namespace ts {
namespace {

// The last enumerator: whatever lies beyond comes from a newer peer.
constexpr auto kLastCause = std::uint16_t(Cause::NoRecord);
constexpr std::size_t kLongestDetail = 4096;

}  // namespace

std::string text(capnp::Text::Reader reader) {
  return {reader.begin(), reader.size()};
}

JobName fromWire(wire::JobKey::Reader key) {
  return {text(key.getGroup()), text(key.getName())};
}

void toWire(const JobName& name, wire::JobKey::Builder out) {
  out.setGroup(name.group);
  out.setName(name.name);
}

Generation fromWire(wire::Generation::Reader generation) {
  return {generation.getNumber(), generation.getId()};
}

void toWire(const Generation& generation, wire::Generation::Builder out) {
  out.setNumber(generation.number);
  out.setId(generation.id);
}

Epoch fromWire(wire::Epoch::Reader epoch) {
  return {epoch.getGeneration(), epoch.getCounter()};
}

void toWire(const Epoch& epoch, wire::Epoch::Builder out) {
  out.setGeneration(epoch.generation);
  out.setCounter(epoch.counter);
}

Gathering fromWire(wire::Gathering gathering) {
  switch (gathering) {
    case wire::Gathering::NO:
      return Gathering::No;
    case wire::Gathering::YES:
      return Gathering::Yes;
    default:
      return Gathering::Unknown;
  }
}

wire::Gathering toWire(Gathering gathering) {
  switch (gathering) {
    case Gathering::No:
      return wire::Gathering::NO;
    case Gathering::Yes:
      return wire::Gathering::YES;
    default:
      return wire::Gathering::UNKNOWN;
  }
}

Residency fromWire(wire::Residency residency) {
  switch (residency) {
    case wire::Residency::ABSENT:
      return Residency::Absent;
    case wire::Residency::RESIDENT:
      return Residency::Resident;
    case wire::Residency::QUIESCING:
      return Residency::Quiescing;
    case wire::Residency::QUIET:
      return Residency::Quiet;
    case wire::Residency::SAVING:
      return Residency::Saving;
    case wire::Residency::SAVED:
      return Residency::Saved;
    case wire::Residency::RESTORING:
      return Residency::Restoring;
    case wire::Residency::FAULTED:
      return Residency::Faulted;
  }
  return Residency::Faulted;
}

wire::Residency toWire(Residency residency) {
  switch (residency) {
    case Residency::Absent:
      return wire::Residency::ABSENT;
    case Residency::Resident:
      return wire::Residency::RESIDENT;
    case Residency::Quiescing:
      return wire::Residency::QUIESCING;
    case Residency::Quiet:
      return wire::Residency::QUIET;
    case Residency::Saving:
      return wire::Residency::SAVING;
    case Residency::Saved:
      return wire::Residency::SAVED;
    case Residency::Restoring:
      return wire::Residency::RESTORING;
    case Residency::Faulted:
      return wire::Residency::FAULTED;
  }
  return wire::Residency::FAULTED;
}

Cause causeFromWire(std::uint16_t number) {
  return number <= kLastCause ? Cause(number) : Cause::DriverError;
}

std::uint16_t toWire(Cause cause) {
  return std::uint16_t(cause);
}

Devices devicesFromWire(capnp::List<std::uint32_t>::Reader indices, NodeId node) {
  Devices devices;
  devices.reserve(indices.size());
  for (std::uint32_t index : indices) devices.push_back({node, index});
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

void toWire(const Devices& devices, capnp::List<std::uint32_t>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, devices[i].index);
}

MemberFact fromWire(wire::MemberFact::Reader fact, NodeId node) {
  return {.member = MemberId{fact.getMember()},
          .residency = fromWire(fact.getResidency()),
          .bytes = fact.getBytes(),
          .residue = fact.getResidue(),
          .devices = devicesFromWire(fact.getDevices(), node),
          .unreleased = fact.getUnreleased()};
}

void toWire(const MemberFact& fact, int pid, wire::MemberFact::Builder out) {
  out.setMember(std::uint64_t(fact.member));
  out.setPid(pid);
  out.setResidency(toWire(fact.residency));
  out.setBytes(fact.bytes);
  out.setResidue(fact.residue);
  toWire(fact.devices, out.initDevices(unsigned(fact.devices.size())));
  out.setUnreleased(fact.unreleased);
}

namespace {

Outcome::Code fromWire(wire::Outcome::Code code) {
  switch (code) {
    case wire::Outcome::Code::OK:
      return Outcome::Code::Ok;
    case wire::Outcome::Code::REFUSED:
      return Outcome::Code::Refused;
    case wire::Outcome::Code::FAILED:
      return Outcome::Code::Failed;
    case wire::Outcome::Code::GONE:
      return Outcome::Code::Gone;
  }
  return Outcome::Code::Failed;
}

wire::Outcome::Code toWire(Outcome::Code code) {
  switch (code) {
    case Outcome::Code::Ok:
      return wire::Outcome::Code::OK;
    case Outcome::Code::Refused:
      return wire::Outcome::Code::REFUSED;
    case Outcome::Code::Failed:
      return wire::Outcome::Code::FAILED;
    case Outcome::Code::Gone:
      return wire::Outcome::Code::GONE;
  }
  return wire::Outcome::Code::FAILED;
}

// What was done matters more than its every word, which must not make the answer too long to
// arrive.
std::string shortened(const std::string& detail) {
  if (detail.size() <= kLongestDetail) return detail;
  std::size_t end = kLongestDetail;
  while (end > 0 && (static_cast<unsigned char>(detail[end]) & 0xc0) == 0x80) --end;
  return detail.substr(0, end) + "…";
}

}  // namespace

Outcome fromWire(wire::Outcome::Reader outcome, NodeId node) {
  Outcome result{.code = fromWire(outcome.getCode()),
                 .cause = causeFromWire(outcome.getCause()),
                 .need = outcome.getNeed(),
                 .free = outcome.getFree(),
                 .lasting = outcome.getLasting(),
                 .detail = text(outcome.getDetail()),
                 .bytes = outcome.getBytes()};
  auto members = outcome.getMembers();
  result.members.reserve(members.size());
  for (auto fact : members) result.members.push_back(fromWire(fact, node));
  return result;
}

void toWire(const Outcome& outcome, wire::Outcome::Builder out) {
  out.setCode(toWire(outcome.code));
  out.setCause(toWire(outcome.cause));
  out.setNeed(outcome.need);
  out.setFree(outcome.free);
  out.setLasting(outcome.lasting);
  if (!outcome.detail.empty()) out.setDetail(shortened(outcome.detail));
  out.setBytes(outcome.bytes);
  if (outcome.members.empty()) return;
  auto members = out.initMembers(unsigned(outcome.members.size()));
  for (unsigned i = 0; i < members.size(); ++i) toWire(outcome.members[i], 0, members[i]);
}

JobOptions optionsFromWire(wire::JobSpec::Reader spec) {
  return {.gang = spec.getGang(),
          .priority = spec.getPriority(),
          .onBroken = spec.getKeepBroken() ? OnBroken::Keep : OnBroken::Kill};
}

}  // namespace ts
