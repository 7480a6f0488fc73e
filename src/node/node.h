// A whole node daemon on a loop: everything that main() and the tests put together.
#pragma once

#include <kj/async-io.h>

#include <memory>
#include <optional>
#include <set>

#include "config/config.h"
#include "node/by_pid.h"
#include "node/clearing.h"
#include "node/doctor.h"
#include "node/orders.h"
#include "node/reception.h"

namespace ts::node {

class Node final : private MasterLinkHost, private kj::TaskSet::ErrorHandler {
public:
  // What comes from outside. Everything outlives the node.
  struct World {
    LibeventPort& port;
    kj::Network& network;
    Workers& workers;
    Inventory& inventory;
    Backends backends;  // and "turns", which needs none
    Auth& auth;
    uid_t masterUid = 0;
    Log& log;
    std::string version;
    kj::Duration reconnectGrace = 5 * kj::SECONDS;
    kj::Duration callLimit = 30 * kj::SECONDS;  // for calls of a driver that move nothing
    std::function<int(int pidfd, int number)> signal = signalPidfd;  // 0 or errno
  };
  Node(const NodeConfig& config, World world, Records& records);
  KJ_DISALLOW_COPY(Node);

  // Reads where the state of what an earlier life left is, listens and calls the master.
  kj::Promise<void> start(kj::AutoCloseFd listener);
  // No more is taken in. Resolves when nothing is moved any more.
  kj::Promise<void> stop();
  // What may change while it runs: the budget.
  void reconfigure(const NodeConfig& config);

  // Text for Prometheus.
  std::string renderMetrics() { return metrics_.render(); }

  const Registry& registry() const { return registry_; }
  const MasterLink& link() const { return link_; }
  const Orders& orders() const { return orders_; }
  std::size_t connections() const { return server_ ? server_->connections() : 0; }

private:
  Mover::Parts moverParts();
  Clearing::Parts clearingParts();
  Preparation::Parts preparationParts();
  Participants::Parts participantsParts();
  Orders::Parts ordersParts();
  ByPid::Parts byPidParts();
  Steps::Parts stepsParts();
  Reception::Parts receptionParts();

  // MasterLinkHost
  Generation highestGeneration() override { return registry_.generation(); }
  wire::NodeDaemon::Client newDaemon() override { return orders_.newDaemon(); }
  void report(wire::NodeReport::Builder out) override;
  void heartbeat(wire::NodeSession::HeartbeatParams::Builder out) override;
  void sessionBegan(const Generation& generation) override { orders_.sessionBegan(generation); }
  void linkSettled() override {
    participants_.linkSettled();
    steps_.linkSettled();
  }
  void linkLost() override { participants_.linkLost(); }

  void taskFailed(kj::Exception&& exception) override;
  void tellMember(MemberId id);
  void memberSeen(const Member& member, std::string_view because);
  void memberChanged(Member& member);
  void readAgain(MemberId id);
  void processEnded(const Identity& identity);
  void memberEnded(Member& member);
  void watchMember(MemberId member);
  void memberCleared(MemberId member);
  void settle(const JobName& job);
  kj::Promise<void> adopt();
  kj::Promise<void> measure();
  bool recognize(Process& process);
  kj::Promise<void> probe(std::string name, SnapshotBackend& backend);
  Health health() const;
  void doctor(ConnectionId connection, std::uint64_t request);
  std::string status() const;
  Connection* find(ConnectionId id) { return server_ ? server_->find(id) : nullptr; }

  NodeConfig config_;
  World world_;
  std::string name_;
  Metrics metrics_;
  Meters meters_;
  Registry registry_;
  Fence fence_;
  Bookings bookings_;
  Watch watch_;
  Roll roll_;
  MasterLink link_;
  Mover mover_;
  Clearing clearing_;
  Preparation preparation_;
  Participants participants_;
  Orders orders_;
  ByPid byPid_;
  Steps steps_;
  Reception reception_;
  std::unique_ptr<LocalServer> server_;
  DeviceBytes free_;  // as last measured, for people
  bool measuring_ = false;
  std::set<MemberId> readingAgain_;
  kj::TaskSet tasks_;
};

// The name of this machine.
std::string hostName();

}  // namespace ts::node
