// Everything of a master between its sockets and the core, in the order in which it depends on each
// other.
#pragma once

#include <string>

#include "master/door.h"
#include "master/housekeeping.h"
#include "master/listeners.h"
#include "master/slurm_watch.h"

namespace ts {

// What a master is given: main() makes it once, tests as often as they like.
struct MasterNeeds {
  LibeventPort& port;
  const MasterConfig& config;
  Store& store;
  Workers& workers;
  Auth& auth;
  Log& log;
  std::string version;
  SlurmWatch::Ask askSlurm = {};  // nothing: by Slurm's own commands, on a worker
};

// Not copied, not moved: its parts refer to each other. The last to be made, the connections, are
// the first to go.
struct Master {
  explicit Master(MasterNeeds needs);
  ~Master() noexcept(false);
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  Metrics metrics;
  Directory directory;
  EventLog events;
  Meters meters;
  History history;
  Shell shell;
  Life life;
  Standing standing;
  Reception reception;
  SlurmWatch slurm;
  Operators operators;
  House house;
  Housekeeping housekeeping;
  Listeners listeners;
};

}  // namespace ts
