// Programs as jobs of this node: `run` becomes the program, `slice` takes one turn around it.
#pragma once

#include "cli/options.h"
#include "cli/places.h"

namespace ts::cli {

// Returns only by throwing Failure.
void runProgram(const Places& places, const Options& options);
// The program's exit code, or 128 and its signal.
int sliceProgram(const Places& places, const Options& options);

}  // namespace ts::cli
