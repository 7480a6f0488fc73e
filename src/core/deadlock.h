// Waiting across groups: would an acquire close a circle of slices and processes waiting for each
// other?
#pragma once

#include <optional>

#include "ids.h"

namespace ts {

struct Participant;
struct Roster;

// The job whose slice the acquire would wait for, round the circle; nothing if there is none.
std::optional<JobId> closesCycle(const Roster& roster, const Participant& asking);

}  // namespace ts
