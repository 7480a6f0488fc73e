// The command line of tsnoded.
#pragma once

#include <optional>
#include <string>

namespace ts::node {

struct Arguments {
  std::string config = "/etc/timeslice/node.toml";
  std::string announce;  // a file to write when it is ready, for those who start it
  bool checkConfig = false;
  std::optional<int> exit;  // end at once, with `text`
  std::string text;
};

Arguments parseArguments(int argc, char** argv);

}  // namespace ts::node
