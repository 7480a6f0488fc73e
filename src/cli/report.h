// `tsctl report`: all that a bug report needs in one file, and nothing in it that is secret.
#pragma once

#include <string>

#include "cli/loop.h"
#include "cli/options.h"

namespace ts::cli {

// Writes the file and returns what to print. What cannot be had is told in its place: a report is
// wanted most where something does not answer. Throws Failure if the file cannot be written.
std::string report(Loop& loop, const Options& options);

}  // namespace ts::cli
