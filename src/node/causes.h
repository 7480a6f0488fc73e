// How the master's and the backends' words for a failure are said to a local program.
#pragma once

#include "backend/snapshot_backend.h"
#include "local/protocol.h"
#include "wire/translate.h"

namespace ts::node {

tsl_status statusOf(Cause cause);
const char* nameOf(Cause cause);
tsl_status statusOf(BackendOutcome::Code code);
// What a backend call came to, without members. `did`: "save of pid 17".
Outcome outcomeOf(const BackendOutcome& outcome, const std::string& did);
// Where the state is after a call, as far as the backend could read it; else as before.
Residency residencyOf(const BackendOutcome& outcome, Residency before);
Residency residencyOf(TargetState state, Residency before);
// A refusal as one sentence: its own detail, else what the cause says.
std::string sentenceFor(const Outcome& outcome);

}  // namespace ts::node
