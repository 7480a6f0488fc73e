// Users as configuration names them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ts {

// `names` holds user names and numbers.
bool contains(const std::vector<std::string>& names, uid_t uid);

}  // namespace ts
