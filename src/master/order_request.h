// One order of the core as a call on a node's capability.
#pragma once

#include <kj/async.h>

#include <variant>

#include "core/action.h"
#include "master/directory.h"
#include "timeslice.capnp.h"

namespace ts {

using NodeOrder = std::variant<Prepare, DropBooking, Quiesce, Release, Save, Restore, Grant,
                               EndSlice, Discard, Kill>;

OperationId operationOf(const NodeOrder& order);
NodeId nodeOf(const NodeOrder& order);
JobId jobOf(const NodeOrder& order);
std::string_view verbOf(const NodeOrder& order);  // as describe() says it

// The answer as it came, except that `members` carry the node's own numbers.
kj::Promise<Outcome> send(NodeLink& link, Directory& directory, const JobRecord& job,
                          const NodeOrder& order);

}  // namespace ts
