// One node of a test whose connections, master, daemon and processes go away and come back.
#pragma once

#include <string>
#include <utility>

#include "test_node.h"

namespace ts::test {

struct World {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};

  World() { node.start(); }

  std::uint64_t requestOf(const std::string& job) {
    l.pumpUntil([&] { return master.participants[job].request != 0; });
    return std::exchange(master.participants[job].request, 0);
  }
  tsl_reply enter(Program& p, const std::string& job, std::uint64_t epoch) {
    auto request = p.startAcquire();
    REQUIRE(master.grant(job, epoch, {0}, {requestOf(job)}).wait(l.scope).ok());
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
