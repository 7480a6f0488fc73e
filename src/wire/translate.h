// Between the core's values and the schema's. Ids that a node chose stay the node's own numbers
// here: whoever holds both sides (the master) maps them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/facts.h"
#include "core/ids.h"
#include "timeslice.capnp.h"
#include "wire/generation.h"

namespace ts {

// A job's name on the wire.
struct JobName {
  std::string group;
  std::string name;
  auto operator<=>(const JobName&) const = default;
};

JobName fromWire(wire::JobKey::Reader key);
void toWire(const JobName& name, wire::JobKey::Builder out);

Generation fromWire(wire::Generation::Reader generation);
void toWire(const Generation& generation, wire::Generation::Builder out);

Epoch fromWire(wire::Epoch::Reader epoch);
void toWire(const Epoch& epoch, wire::Epoch::Builder out);

// An unknown number (a newer peer) is read as the value that promises least: Faulted, DriverError.
Residency fromWire(wire::Residency residency);
wire::Residency toWire(Residency residency);
Cause causeFromWire(std::uint16_t number);
Gathering fromWire(wire::Gathering gathering);
wire::Gathering toWire(Gathering gathering);

std::uint16_t toWire(Cause cause);

// Sorted and without duplicates, as the core wants them.
Devices devicesFromWire(capnp::List<std::uint32_t>::Reader indices, NodeId node);
// The indices only; the devices must all be on the peer's node.
void toWire(const Devices& devices, capnp::List<std::uint32_t>::Builder out);

MemberFact fromWire(wire::MemberFact::Reader fact, NodeId node);
void toWire(const MemberFact& fact, int pid, wire::MemberFact::Builder out);

Outcome fromWire(wire::Outcome::Reader outcome, NodeId node);
void toWire(const Outcome& outcome, wire::Outcome::Builder out);

JobOptions optionsFromWire(wire::JobSpec::Reader spec);

std::string text(capnp::Text::Reader reader);

}  // namespace ts
