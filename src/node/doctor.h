// What works on this node and what to do about what does not, as a text for a person.
#pragma once

#include <string>

#include "config/config.h"
#include "device/inventory.h"
#include "node/mover.h"

namespace ts::node {

struct Health {
  std::string name;
  std::string version;
  std::string master;  // "up", or why it is not
  std::vector<std::string> overdue;
  Bytes savedBytes = 0;
};

// Blocking: asks the driver. One finding a line: "ok", "warn" or "fail", what, and the cure.
std::string examine(const NodeConfig& config, const Health& health, Inventory& inventory,
                    const Backends& backends);

// A sealed memory file with the text, to be read by whoever gets it.
kj::AutoCloseFd textAsFile(const std::string& text);

}  // namespace ts::node
