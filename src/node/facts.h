// What the node tells its master, as the schema wants it.
#pragma once

#include "device/inventory.h"
#include "node/registry.h"

namespace ts::node {

MemberFact factOf(const Member& member);
void toWire(const JobSpec& spec, wire::JobSpec::Builder out);
void toWire(const Participant& participant, wire::Participant::Builder out);
void toWire(const Member& member, wire::MemberFact::Builder out);
// With the pids of its members, which only the registry knows.
void toWire(const Outcome& outcome, Registry& registry, wire::Outcome::Builder out);

struct DeviceFact {
  GpuInfo info;
  std::uint64_t freeBytes = 0;
};
// All that must be known of this node by a master that knows nothing.
void toWire(const std::string& node, const std::vector<DeviceFact>& devices,
            const Registry& registry, wire::NodeReport::Builder out);

}  // namespace ts::node
