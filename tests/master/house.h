// A whole master on the test's loop, with a database that outlives it.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>

#include "master/master.h"
#include "master/scripted_node.h"
#include "support/log_file.h"

namespace ts::test {

struct MasterHouse {
  Loop loop;
  MasterConfig config;
  Store store{":memory:"};
  Workers workers;
  std::unique_ptr<Auth> auth = newNoAuth();
  LogFile log{Level::Warning};
  SlurmWatch::Ask askSlurm = [this] {
    ++slurmAsked;
    return kj::Promise<SlurmWord>(slurm);
  };
  SlurmWord slurm;  // what it says
  unsigned slurmAsked = 0;
  std::optional<Master> master;
  std::string address;

  explicit MasterHouse(MasterConfig with = {}) : config(std::move(with)) {
    loop.scope.setBusyPollInterval(64);
    start();
  }

  void start() {
    master.emplace(
        MasterNeeds{loop.port, config, store, workers, *auth, log.log, "test", askSlurm});
    address = master->listeners.tcp("127.0.0.1:0", loop.scope);
  }
  // Nodes lose their connection, and find the next one at another address.
  void restart() {
    master.reset();
    start();
  }
  Shell& shell() { return master->shell; }

  template <class F>
  void until(F done) {
    loop.pumpUntil(done);
  }
  JobPhase phase(const std::string& group, const std::string& job) {
    auto* record = shell().directory().find(JobName{group, job});
    return record == nullptr ? JobPhase::Idle : shell().cluster().view(record->id)->phase;
  }
  NodeState state(const std::string& node) {
    auto* record = shell().directory().findNode(node);
    return record == nullptr ? NodeState::Named : record->state;
  }
};

}  // namespace ts::test
