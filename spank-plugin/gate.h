/* The gate: a task that has not started waits here for its first turn. */
#pragma once

#include "step.h"

/* True: the task has its turn, and may start. Else `error` says why not. Runs in the task's own
 * process, as root, and lasts as long as the turn takes; SIGTERM ends it at once. `speaks`: tells
 * the user that and why it waits. */
bool tsp_gate(const struct tsp_step* step, bool speaks, char* error);
