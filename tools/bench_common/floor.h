// The floor: raw sockets of the same kinds over the same hops, with as many messages and processes,
// and nothing else. What stands above it is what the real thing costs.
#pragma once

#include <string>
#include <vector>

#include "bench_common/player.h"
#include "bench_common/process.h"
#include "support/temp_dir.h"

namespace ts::bench {

// A stand-in for a master and its nodes. When every node has passed on a yield, the master sends
// the phases one after another, each phase's messages to all nodes at once, and goes on when all
// are answered; with the last phase's message a node lets the waiting job in.
class Floor {
public:
  Floor(int nodes, std::vector<int> messagesInPhase);

  std::unique_ptr<Turns> turns() const;  // for a player

private:
  test::TempDir dir_;
  std::vector<std::string> sockets_;
  Process master_;
  std::vector<Process> nodes_;
};

}  // namespace ts::bench
