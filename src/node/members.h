// Turns a look at the devices into members of jobs. Pure but for the registry it changes.
#pragma once

#include <functional>

#include "node/registry.h"
#include "node/scan.h"

namespace ts::node {

// Calls `changed` for each member that is new or that the look shows otherwise than it was known.
// Processes of no job stay strangers.
void applyScan(Registry& registry, const Scan& scan, const std::function<void(Member&)>& changed);

// With the backend `none` every participant is a member with nothing to move.
void applyParticipants(Registry& registry, const JobName& job,
                       const std::function<void(Member&)>& changed);

}  // namespace ts::node
