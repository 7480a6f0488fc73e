// SIGHUP: the configuration is read again, and what can change while nodes are served does.
#pragma once

#include <string>

#include "config/config.h"
#include "log/log.h"

namespace ts {

// Takes over what was read, on a worker: users are looked up. False, with a line per mistake in the
// log: `config` is as before. What needs a restart is left as it is and named.
bool reload(MasterConfig& config, Loaded<MasterConfig> loaded, const std::string& path, Log& log);

Level levelOf(const MasterConfig& config);

}  // namespace ts
