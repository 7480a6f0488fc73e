// Who may join what: the checks between a node's word and the core.
#pragma once

#include "core/facts.h"
#include "master/shell.h"
#include "timeslice.capnp.h"

namespace ts {

// Ok: the job and the participant are known to the core. Else why not, and nothing has changed.
Outcome join(Shell& shell, NodeRecord& node, wire::JobSpec::Reader spec,
             wire::Participant::Reader participant);

// Whether such a job could join there now; nothing changes.
Outcome admissible(Shell& shell, NodeRecord& node, wire::JobSpec::Reader spec,
                   capnp::List<std::uint32_t>::Reader devices);

// What a node reports exists, whatever the configuration has come to say: no checks.
JobRecord& declared(Shell& shell, wire::JobSpec::Reader spec, std::vector<NodeId> nodes,
                    bool gathered);
ParticipantRecord& joined(Shell& shell, NodeRecord& node, JobRecord& job,
                          wire::Participant::Reader participant);

}  // namespace ts
