// The command line of tsmasterd.
#pragma once

#include <optional>
#include <string>

namespace ts {

struct Options {
  std::string config = "/etc/timeslice/master.toml";
  std::string announce;  // a file that gets the addresses once all of them are served; "": none
  bool checkConfig = false;
};

// Nothing: the program ends with `exitCode`; help, version or the mistake has been printed.
std::optional<Options> parseOptions(int argc, char** argv, const char* version, int& exitCode);

}  // namespace ts
