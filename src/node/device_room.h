// Whether a look at the devices shows the room that a restore needs, and who is in its way.
#pragma once

#include "node/registry.h"
#include "node/scan.h"

namespace ts::node {

// Ok, or a refusal that names the device, what is free, and who holds it. A device that could not
// be measured has no room.
Outcome roomFor(const DeviceBytes& need, const std::string& who, Registry& registry,
                const Scan& scan);

// Who uses a device, largest first, for a person: "pid 17 (rl/a) 3221225472 bytes, pid 5 (no job)
// …".
std::string holdersOf(Registry& registry, const Scan& scan, std::uint32_t device);

}  // namespace ts::node
