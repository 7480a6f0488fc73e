// Snapshot and restore of one process by hand, without any master: for tsctl and for trying things out.
#pragma once

#include <kj/async.h>

#include <functional>
#include <map>
#include <string>

#include "node/local_server.h"
#include "node/members.h"
#include "node/mover.h"

namespace ts::node {

class ByPid final : private kj::TaskSet::ErrorHandler {
public:
  struct Parts {
    Registry& registry;
    Roll& roll;
    Mover& mover;
    Workers& workers;
    kj::Timer& timer;
    Log& log;
    SnapshotBackend& backend;
    std::function<Connection*(ConnectionId)> find;
  };
  explicit ByPid(Parts parts) : parts_(parts), tasks_(*this) {}

  // Quiesces and saves; what was stopped and cannot be saved goes on.
  void snapshot(Connection& from, std::uint64_t request, const tsl_pid& what);
  // Restores, if there is room, and lets it go on.
  void restore(Connection& from, std::uint64_t request, const tsl_pid& what);

private:
  struct Result {
    tsl_status status = TSL_OK;
    std::string detail;
    std::uint64_t bytes = 0;
    std::uint64_t tookUs = 0;
  };
  struct Ask {
    ConnectionId from{};
    std::uint64_t request = 0;
    pid_t pid = 0;
    Deadline deadline;
  };
  void taskFailed(kj::Exception&& exception) override;
  // Why this caller may not do this to that process, or nothing.
  std::optional<Result> forbidden(const Connection& from, pid_t pid);
  void start(Connection& from, std::uint64_t request, const tsl_pid& what, const char* verb,
             kj::Promise<Result> (ByPid::*work)(const Ask&));
  kj::Promise<Result> save(const Ask& ask);
  kj::Promise<Result> bringBack(const Ask& ask);
  kj::Promise<Result> measured(pid_t pid, Result saved);
  void answer(const Ask& ask, const Result& result);

  Parts parts_;
  std::map<pid_t, DeviceBytes> saved_;  // what the snapshots need to come back
  std::set<pid_t> busy_;
  kj::TaskSet tasks_;
};

}  // namespace ts::node
