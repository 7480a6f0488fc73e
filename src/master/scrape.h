// Metrics of what is, looked up when somebody asks for them.
#pragma once

#include "master/history.h"
#include "master/shell.h"
#include "metrics/metrics.h"

namespace ts {

// Sets the gauges at each render of `metrics`; all three must outlive it.
void scrapeState(Metrics& metrics, Shell& shell, History& history);

}  // namespace ts
