// A master and one node of a test, and programs that take turns, go away and come back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test_node.h"

namespace ts::test {

struct World {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};

  World() { node.start(); }

  // Waits until the master has heard the acquire, and returns the node's number for it.
  std::uint64_t requestOf(const std::string& job) {
    l.pumpUntil([&] { return master.participants[job].request != 0; });
    return std::exchange(master.participants[job].request, 0);
  }
  // From acquire to grant.
  tsl_reply enter(Program& p, const std::string& job, std::uint64_t epoch,
                  std::vector<std::uint32_t> devices = {0}) {
    auto request = p.startAcquire();
    REQUIRE(master.grant(job, epoch, devices, {requestOf(job)}).wait(l.scope).ok());
    return p.answerTo(request);
  }
  void reconnect(Program& p) {
    p.disconnect();
    p.connect();
    REQUIRE(p.hello().status == TSL_OK);
  }
  void hear(const std::string& what) {
    l.pumpUntil([&] { return master.heard(what); });
  }
  void masterGone() {
    master.stopListening();
    master.dropConnections();
    l.pumpUntil([&] { return !node->link().isUp(); });
  }
  void masterBack() {
    auto before = master.sessions;
    master.listenAgain();
    l.pumpUntil([&] { return master.sessions > before && node->link().isUp(); });
  }
  std::string id(const std::string& job) {
    return std::to_string(master.participants[job].participant);
  }
};

}  // namespace ts::test
