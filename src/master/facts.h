// What a node says about members, turned into the core's ids.
#pragma once

#include <vector>

#include "core/facts.h"
#include "master/directory.h"

namespace ts {

// The member under its own id: made when the node names it for the first time.
MemberRecord& member(Directory& directory, NodeRecord& node, JobRecord& job, std::uint64_t local,
                     std::int32_t pid);

// In place: the node's numbers become the core's ids.
void adopt(Directory& directory, NodeRecord& node, JobRecord& job, std::vector<MemberFact>& facts);

}  // namespace ts
