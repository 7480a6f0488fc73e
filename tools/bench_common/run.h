// What the main() of every bench does: reads the command line, measures, and ends in order.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace ts::bench {

// The exit code: 0 measured, 1 failed (the reason is on stderr), 2 usage, 128 + N ended by signal
// N.
int runBench(CLI::App& app, int argc, char** argv, const std::function<void()>& measure);

}  // namespace ts::bench
