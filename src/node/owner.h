// Whose state a state directory holds: a node that changed its name must not take its jobs along,
// because the master would have them on two nodes. Pure.
#pragma once

#include <string>

#include "node/journal.h"

namespace ts::node {

// Why the node of this name cannot go on with these records, with the way out; or nothing, and they
// are its own from here on.
std::string ownRecords(Records& records, const std::string& name);

}  // namespace ts::node
