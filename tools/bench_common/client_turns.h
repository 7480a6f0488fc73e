// Turns through libtimeslice and real daemons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench_common/player.h"

namespace ts::bench {

// A participant on each node; together they are one gang if there are several nodes.
std::unique_ptr<Turns> clientTurns(const std::vector<std::string>& sockets,
                                   const std::string& group, const std::string& job,
                                   const std::string& devices = "0");

}  // namespace ts::bench
