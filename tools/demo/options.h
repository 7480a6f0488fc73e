// What the command line of the demo says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peers.h"
#include "trainer.h"

namespace demo {

struct Options {
  std::string name = "demo";
  TrainerOptions trainer;
  Meeting meeting;
  unsigned steps = 24;
  int device = 0;
  std::string curve;  // file; "": none
  bool json = false;
  bool quiet = false;
  bool hold = false;
  std::optional<std::uint64_t> leaveFree;  // hold all of the card's memory but this
};

// Prints help or what is wrong; then the exit code is in `exit`.
struct Parsed {
  Options options;
  std::optional<int> exit;
};
Parsed parseOptions(int argc, char** argv);

}  // namespace demo
