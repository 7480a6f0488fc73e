// Where the daemons are: by the command line, the environment, the node's configuration, or by
// default.
#pragma once

#include <string>

#include "cli/options.h"

namespace ts::cli {

constexpr const char* kDefaultPlace = "the default";

struct Place {
  std::string address;  // "HOST:PORT" or "unix:PATH"; a plain path for the node's socket
  std::string from;     // for errors: "--master", kDefaultPlace, ...
};

struct Places {
  Place master;
  Place node;
  std::string auth;  // munge or none
  // Nobody said how, and the master is on this machine: if it wants no proof, none is given.
  bool authByMaster = false;
  std::string masterUser;      // whose credential the master must have
  std::string masterUserFrom;  // the file that says so, or kDefaultPlace
};

// Throws Failure: bad configuration, or an address that is none.
Places findPlaces(const Options& options);

}  // namespace ts::cli
