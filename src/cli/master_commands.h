// The commands that ask tsmasterd: looking and acting.
#pragma once

#include <functional>
#include <string>

#include "cli/master.h"
#include "cli/options.h"

namespace ts::cli {

// status, jobs, nodes, why: text for stdout, JSON with --json. Throws Failure.
std::string look(Master& master, const Options& options);
// pause, resume, evict, clear-fault, drain, undrain, declare-dead, slurm-ended: what was done.
std::string act(Master& master, const Options& options);
// Each line of the events since options.sinceUs. Returns at the end of the past, or with --follow
// when the connection ends. Throws Failure.
using TakeEvent = std::function<void(wire::EventLine::Reader)>;
void readEvents(Loop& loop, Master& master, const Options& options, TakeEvent take);
// events: prints lines as they come; returns at the end of the past, or with --follow when
// interrupted. Throws Failure.
void printEvents(Loop& loop, Master& master, const Options& options);

}  // namespace ts::cli
