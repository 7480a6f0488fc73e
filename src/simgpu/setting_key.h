// One key of a control file and the values it takes.
#pragma once

#include <optional>
#include <string>

#include "simgpu/settings.h"

namespace simgpu {

// The error names the key, the value and what would be good.
std::optional<std::string> setOne(Settings& settings, const std::string& key,
                                  const std::string& value);

}  // namespace simgpu
