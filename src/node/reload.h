// SIGHUP: the configuration is read again, and what can change while jobs run does.
#pragma once

#include <string>

#include "config/config.h"
#include "log/log.h"

namespace ts::node {

// False, with a line per mistake in the log: `config` is as before. What needs a restart is left as
// it is and named.
bool reload(NodeConfig& config, const std::string& path, Log& log);

}  // namespace ts::node
