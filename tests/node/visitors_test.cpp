#include "node/visitors.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "reactor/descriptors.h"
#include "test_node.h"

using namespace ts;
using namespace ts::test;
using node::ConnectionId;
using node::Visitors;

namespace {

// Users that are told from each other need root.
constexpr uid_t kHostile = 4001;
bool canBeOthers() {
  return ::geteuid() == 0;
}

struct Crowded {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};

  explicit Crowded(std::uint32_t most) {
    node.config.connectionsPerUser = most;
    node.start();
  }
  std::unique_ptr<Program> stranger() {
    return std::make_unique<Program>(l, node.config.socket, kHostile);
  }
};

bool said(const tsl_reply& reply, const std::string& what) {
  return std::string(reply.detail).find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("FF-E1: a user has so many connections, is told of it, and others get in", "[node]") {
  if (!canBeOthers()) {
    WARN("needs root");
    return;
  }
  Crowded w(2);
  auto a = w.stranger(), b = w.stranger();
  CHECK(a->hello().status == TSL_OK);
  CHECK(b->hello().status == TSL_OK);
  auto c = w.stranger();
  auto refusal = c->hello();
  CHECK(refusal.status == TSL_BUSY);
  CHECK(said(refusal, "uid 4001 has 2 connections"));
  CHECK(said(refusal, "connections_per_user"));
  CHECK(c->isClosedByNode());
  // Others do not notice.
  auto other = w.node.program();
  CHECK(other->hello().status == TSL_OK);
  // One that ends makes room.
  a->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 2; });
  auto d = w.stranger();
  CHECK(d->hello().status == TSL_OK);
}

TEST_CASE("FF-E1: a user who connects without end is not even told after a while", "[node]") {
  if (!canBeOthers()) {
    WARN("needs root");
    return;
  }
  Crowded w(1);
  std::vector<std::unique_ptr<Program>> crowd;
  for (int i = 0; i < 20; ++i) crowd.push_back(w.stranger());
  CHECK(crowd.back()->isClosedByNode());
  CHECK(w.node->connections() <= 9);
  CHECK(w.node.logged({"local-connection-refused", "uid=4001"}) != "");
}

TEST_CASE("FF-E1: who connects and says nothing is let go, who has greeted stays", "[node]") {
  Loop l;
  FakeMaster master(l);
  TestNode node(l, &master);
  node.config.helloDeadline = std::chrono::milliseconds(300);
  node.start();
  Program silent(l, node.config.socket);
  auto polite = node.program();
  CHECK(polite->hello().status == TSL_OK);
  Program alsoSilent(l, node.config.socket);
  CHECK(silent.isClosedByNode());
  CHECK(alsoSilent.isClosedByNode());
  CHECK(polite->call(message(TSL_STATUS)).status == TSL_OK);
  // A message that is no greeting is none.
  Program cancels(l, node.config.socket);
  auto cancel = message(TSL_CANCEL);
  cancel.u.cancel.target = 7;
  cancels.send(cancel);
  CHECK(cancels.isClosedByNode());
}

TEST_CASE("FF-E1: nobody who has greeted leaves a timer behind", "[node]") {
  Loop l;
  std::vector<ConnectionId> late;
  Visitors visitors(l.port.timer(), {.perUser = 8, .greeting = 5 * kj::MILLISECONDS},
                    [&](ConnectionId id) { late.push_back(id); });
  for (std::uint64_t i = 1; i <= 3; ++i) visitors.arrive(ConnectionId{i}, 1);
  visitors.greeted(ConnectionId{1});
  visitors.left(ConnectionId{3});
  l.pumpUntil([&] { return !late.empty(); });
  CHECK(late == std::vector{ConnectionId{2}});
  visitors.left(ConnectionId{2});
  // After a watch that has ended there is another.
  visitors.arrive(ConnectionId{4}, 1);
  l.pumpUntil([&] { return late.size() == 2; });
  CHECK(late.back() == ConnectionId{4});
  // Nobody is watched for, nothing is waited for.
  kj::TimerImpl clock(kj::origin<kj::TimePoint>());
  Visitors calm(clock, {.perUser = 8, .greeting = 5 * kj::MILLISECONDS}, [](ConnectionId) {});
  calm.arrive(ConnectionId{1}, 1);
  CHECK(clock.nextEvent() != nullptr);
  calm.greeted(ConnectionId{1});
  CHECK(clock.nextEvent() == nullptr);
}

TEST_CASE("FF-E1: one user gets a quarter of the descriptors at most", "[node]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few{64, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  auto share = affordable(1024);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(share == 16);
  CHECK(affordable(4) == 4);
}
