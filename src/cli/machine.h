// What this machine can do by itself, as seen by whoever runs tsctl: driver, NVML, rights.
#pragma once

#include "cli/finding.h"

namespace ts::cli {

// For where no node daemon can be asked, which sees more.
Findings examineMachine();

}  // namespace ts::cli
