// How many descriptors one stranger may take of those that this process may open.
#pragma once

#include <cstddef>

namespace ts {

// At most `wanted`, at most a quarter of RLIMIT_NOFILE's soft limit, at least 1.
std::size_t affordable(std::size_t wanted);

}  // namespace ts
