// Turns a look at the devices into members of jobs. Pure but for the registry it changes.
#pragma once

#include <functional>
#include <string_view>

#include "node/registry.h"
#include "node/scan.h"

namespace ts::node {

struct MemberNews {
  // A member is new, or is otherwise than it was known.
  std::function<void(Member&)> changed;
  // It is quiet, and what it had on a device is there no more: a call that an earlier life of the
  // daemon made has ended since. Only the driver knows where its state is.
  std::function<void(Member&)> vanished;
  // It is new; what made it one: see Kinship.
  std::function<void(const Member&, std::string_view because)> seen;
};

// Processes of no job stay strangers.
void applyScan(Registry& registry, const Scan& scan, const MemberNews& news);

// With the backend `none` every participant is a member with nothing to move.
void applyParticipants(Registry& registry, const JobName& job, const MemberNews& news);

}  // namespace ts::node
