#include "node/arguments.h"

#include <string_view>

namespace ts::node {
namespace {

const char* const kHelp =
    R"(usage: tsnoded [--config FILE] [--check-config] [--announce FILE] [--version] [--help]

The daemon of one node: local programs take turns on its devices, and only it moves device state.

  --config FILE     configuration, default /etc/timeslice/node.toml
  --check-config    read the configuration, say what is wrong with it, and end
  --announce FILE   write name, socket and pid to FILE when the daemon is ready
  --version         print the version
  --help            print this

Signals: SIGTERM ends it when no backend call runs any more, or the longest deadline is over; SIGHUP reads
the configuration again (log_level and host_budget change at once, the rest with a restart).
Exit codes: 0 ended as asked, 1 failed or left a call of a driver behind, 2 usage, 78 the configuration is
wrong.

Examples:
  tsnoded --config /etc/timeslice/node.toml
  tsnoded --config node.toml --check-config

A node that takes turns with jobs that move nothing, for trying things out:
  name = "n1"
  master = "127.0.0.1:6830"
  socket = "/tmp/n1/node.sock"
  state_dir = "/tmp/n1/state"
  auth = "none"
  backend = "none"
  devices = 2
)";

Arguments ended(int code, std::string text) {
  Arguments a;
  a.exit = code;
  a.text = std::move(text);
  return a;
}

}  // namespace

Arguments parseArguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--help" || word == "-h") return ended(0, kHelp);
    if (word == "--version") return ended(0, "tsnoded " TIMESLICE_VERSION "\n");
    if (word == "--check-config") {
      a.checkConfig = true;
      continue;
    }
    std::string* value = word == "--config"     ? &a.config
                         : word == "--announce" ? &a.announce
                                                : nullptr;
    if (!value)
      return ended(2, "tsnoded: unknown argument " + std::string(word) + "; see --help\n");
    if (++i == argc) return ended(2, "tsnoded: " + std::string(word) + " wants a file\n");
    *value = argv[i];
  }
  return a;
}

}  // namespace ts::node
