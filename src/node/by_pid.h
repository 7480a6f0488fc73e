// Snapshot and restore of one process by hand, without any master: for tsctl and for trying things
// out.
#pragma once

#include <kj/async.h>

#include <functional>
#include <set>
#include <string>

#include "node/local_server.h"
#include "node/mover.h"

namespace ts::node {

class ByPid final : private kj::TaskSet::ErrorHandler {
public:
  struct Parts {
    Registry& registry;
    Roll& roll;
    Mover& mover;
    Watch& watch;
    Workers& workers;
    kj::Timer& timer;
    Log& log;
    SnapshotBackend& backend;
    std::function<Connection*(ConnectionId)> find;
    kj::Duration freedDeadline;
  };
  explicit ByPid(Parts parts) : parts_(std::move(parts)), tasks_(*this) {}

  // Quiesces and saves; what was stopped and cannot be saved goes on.
  void snapshot(Connection& from, std::uint64_t request, const tsl_pid& what);
  // Restores, if there is room, and lets it go on.
  void restore(Connection& from, std::uint64_t request, const tsl_pid& what);

  kj::Promise<void> whenIdle() { return tasks_.onEmpty(); }

  // After a restart: what was saved and has ended since is forgotten.
  void adopt();
  void processEnded(const Identity& identity) { parts_.registry.forgetSavedByHand(identity); }

private:
  struct Result {
    tsl_status status = TSL_OK;
    std::string detail;
    std::uint64_t bytes = 0;
    std::uint64_t tookUs = 0;
  };
  struct Ask {
    const char* verb;
    ConnectionId from;
    std::uint64_t request;
    HeldProcess process;
    std::int64_t limitMs;
    Deadline deadline;
  };
  using Work = kj::Promise<Result> (ByPid::*)(const Ask&);
  void taskFailed(kj::Exception&& exception) override;
  // Why this caller may not do this to that process, or nothing.
  std::optional<Result> forbidden(const Connection& from, pid_t pid);
  void begin(Connection& from, std::uint64_t request, const tsl_pid& what, const char* verb,
             Work work);
  void run(const Ask& ask, Work work);
  Result ended(const Ask& ask, Result result);
  Result late(const Ask& ask);
  kj::Promise<Result> save(const Ask& ask);
  kj::Promise<Result> bringBack(const Ask& ask);
  kj::Promise<Result> measured(const Ask& ask, const DeviceBytes& held, Result saved);
  void answer(const Ask& ask, const Result& result);

  Parts parts_;
  std::set<Identity> busy_;
  kj::TaskSet tasks_;
};

}  // namespace ts::node
