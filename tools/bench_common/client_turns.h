// Turns through libtimeslice and real daemons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench_common/player.h"

namespace ts::bench {

struct Job {
  std::string group = "bench";
  std::string name;
  std::string devices = "0";
  std::string backend = "none";  // all orders of a switch travel; "turns": nothing is there to move
};

// A participant on each node; together they are one gang if there are several nodes.
std::unique_ptr<Turns> clientTurns(const std::vector<std::string>& sockets, const Job& job);

}  // namespace ts::bench
