// The commands that ask this node's tsnoded alone: snapshot and restore.
#pragma once

#include "cli/options.h"
#include "cli/places.h"

namespace ts::cli {

// Moves each process, prints a line per process, goes on after a failure. Throws Failure in the end
// if one could not be moved.
void moveProcesses(const Places& places, const Options& options);

}  // namespace ts::cli
