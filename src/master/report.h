// A node's report as events: it replaces whatever the master believed of that node.
#pragma once

#include "master/shell.h"
#include "timeslice.capnp.h"

namespace ts {

// Feeds NodeJoined, the facts of its jobs, the ends of what is not there any more, NodeReported.
void takeReport(Shell& shell, NodeRecord& node, wire::NodeReport::Reader report);

}  // namespace ts
