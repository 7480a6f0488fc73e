#include <unistd.h>

#include <catch2/catch.hpp>

#include "node_world.h"

using namespace ts;
using namespace ts::test;

// Connections, masters and processes that go away, and some that come back.

TEST_CASE("a holder that reconnects keeps its slice", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  w.reconnect(*a);
  auto reply = a->join("rl", "a", "0");
  CHECK(reply.status == TSL_OK);
  CHECK(reply.epoch_counter == 7);
  CHECK(w.master.count("join") == 1);
  // The answer to its acquire may have been lost: asking again yields the same slice.
  CHECK(a->acquire().epoch_counter == 7);
  CHECK(a->yield(7).status == TSL_OK);
}

TEST_CASE("a lost connection ends nothing while the process lives", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  a->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 0; });
  CHECK(w.master.count("left") == 0);
  CHECK(w.master.count("yield") == 0);
}

TEST_CASE("a process that reconnects cannot slip into another job", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.reconnect(*a);
  auto reply = a->join("rl", "b", "0");
  CHECK(reply.status == TSL_ALREADY_JOINED);
  CHECK(std::string(reply.detail).find("rl/a") != std::string::npos);
}

TEST_CASE("a waiter that reconnects keeps its place", "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  w.reconnect(*a);
  REQUIRE(a->join("rl", "a", "0").status == TSL_OK);
  auto again = a->startAcquire();
  CHECK(a->call(message(TSL_STATUS)).status == TSL_OK);
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  CHECK(a->answerTo(again).epoch_counter == 7);
  CHECK(w.master.count("acquire") == 1);
  CHECK(w.master.count("cancel") == 0);
}

TEST_CASE("a grant to a caller that is back answers its new acquire", "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  // Read one at a time, and so the end of this connection after the first words on the next.
  a->letNodeSleep(true);
  for (int i = 0; i < 100; ++i) a->send(message(TSL_CANCEL));
  a->disconnect();
  a->connect();
  auto greeting = message(TSL_HELLO);
  greeting.u.hello = {TSL_VERSION, TSL_VERSION};
  auto hello = a->send(greeting);
  auto join = a->send(joinMessage("rl", "a"));
  a->letNodeSleep(false);
  w.l.pumpUntil([&] { return w.node.logged({"rejoin"}) != ""; });
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  auto acquire = a->startAcquire();
  CHECK(a->answerTo(hello).status == TSL_OK);
  CHECK(a->answerTo(join).status == TSL_OK);
  auto grant = a->answerTo(acquire);
  CHECK(grant.status == TSL_OK);
  CHECK(grant.epoch_counter == 7);
}

TEST_CASE("a turn that comes while its caller is away waits for it", "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  a->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 0; });
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  a->connect();
  REQUIRE(a->hello().status == TSL_OK);
  CHECK(a->join("rl", "a", "0").epoch_counter == 7);
  auto grant = a->acquire();
  CHECK(grant.epoch_counter == 7);
  CHECK(grant.waited_us == 1234);
}

TEST_CASE("FF-D1: a turn whose caller does not come back is given back", "[node]") {
  Loop l;
  FakeMaster master(l);
  TestNode node(l, &master);
  node.grace = 1 * kj::MILLISECONDS;
  node.start();
  auto a = node.joined("a");
  a->startAcquire();
  l.pumpUntil([&] { return master.participants["a"].request != 0; });
  auto number = master.participants["a"].request;
  SECTION("before the grant") {
    a->disconnect();
    l.pumpUntil([&] { return master.heard("cancel " + std::to_string(number)); });
  }
  SECTION("after it") {
    a->disconnect();
    l.pumpUntil([&] { return node->connections() == 0; });
    master.grant("a", 7, {0}, {number}).wait(l.scope);
    l.pumpUntil([&] { return master.count("yield") + master.count("cancel") > 0; });
  }
}

TEST_CASE("a process that dies leaves, and says that it died", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  auto who = w.id("a");
  a->kill();
  w.hear("left " + who + " died");
  w.hear("job-ended a");
  CHECK(w.node->registry().grantedTo(0) == nullptr);
}

TEST_CASE("a process that dies while it joins is forgotten", "[node]") {
  World w;
  w.master.holdJoins = true;
  auto a = w.node.program();
  a->send(joinMessage("rl", "a"));
  w.hear("join a uid=" + std::to_string(::getuid()));
  a->kill();
  w.l.pumpUntil([&] { return w.node->connections() == 0; });
  w.master.letJoins();
  w.l.pumpUntil([&] { return w.node->registry().jobs().empty(); });
  CHECK(w.master.count("left") == 1);
}

TEST_CASE("FF-D4: a yield while the master is away returns, and the next report says it",
          "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  auto who = w.id("a");
  w.masterGone();
  CHECK(a->yield(7).status == TSL_OK);
  CHECK(w.master.count("yield") == 0);
  w.masterBack();
  CHECK_FALSE(w.master.participants["a"].entered);
  CHECK(w.master.count("yield " + who + " epoch=7") == 1);
  CHECK_FALSE(w.node->registry().participants().begin()->second.untold);
  w.masterGone();
  w.masterBack();
  CHECK(w.master.count("yield") == 1);
}

TEST_CASE("an acquire while the master is away waits in the report", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.masterGone();
  CHECK(a->acquire(0).status == TSL_MASTER_DOWN);
  auto request = a->startAcquire();
  w.masterBack();
  CHECK(w.master.participants["a"].waiting);
  auto number = w.master.participants["a"].request;
  CHECK(w.master.count("acquire") == 0);
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  CHECK(a->answerTo(request).epoch_counter == 7);
}

TEST_CASE("an acquire that ends while a session begins is taken back, for the report has told it",
          "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.masterGone();
  auto request = a->startAcquire();
  CHECK(a->call(message(TSL_STATUS)).status == TSL_OK);
  w.master.holdEntry = true;
  w.master.listenAgain();
  w.l.pumpUntil([&] { return w.master.participants["a"].waiting; });
  auto told = std::to_string(std::uint64_t(w.master.participants["a"].request));
  a->send(message(TSL_LEAVE));
  CHECK(a->answerTo(request).status == TSL_CANCELLED);
  w.master.letEnter();
  w.l.pumpUntil([&] { return w.master.count("left") == 1; });
  CHECK(w.master.heard("cancel " + told));
}

TEST_CASE("a try in flight when the master goes is answered", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto request = a->startAcquire(0);
  w.requestOf("a");
  w.masterGone();
  CHECK(a->answerTo(request).status == TSL_MASTER_DOWN);
  w.masterBack();
  CHECK_FALSE(w.master.participants["a"].waiting);
}

TEST_CASE("a join in flight when the master goes is answered", "[node]") {
  World w;
  w.master.holdJoins = true;
  auto a = w.node.program();
  auto request = a->send(joinMessage("rl", "a"));
  w.hear("join a uid=" + std::to_string(::getuid()));
  w.masterGone();
  CHECK(a->answerTo(request).status == TSL_MASTER_DOWN);
  w.masterBack();
  CHECK(w.master.count("undone") == 1);
  w.l.pumpUntil([&] { return w.node->registry().participants().empty(); });
}

TEST_CASE("a join in flight when the master goes is asked anew within its deadline", "[node]") {
  World w;
  w.master.holdJoins = true;
  auto a = w.node.program();
  auto join = joinMessage("rl", "a");
  join.u.join.deadline_ms = 3600 * 1000;
  auto request = a->send(join);
  auto asked = "join a uid=" + std::to_string(::getuid());
  w.hear(asked);
  w.masterGone();
  w.master.holdJoins = false;
  w.masterBack();
  CHECK(a->answerTo(request).status == TSL_OK);
  CHECK(w.master.count("undone") == 1);
  CHECK(w.master.count(asked) == 2);
}

TEST_CASE("a program that leaves while the master is away is told as left", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  auto who = w.id("a");
  w.masterGone();
  CHECK(a->leave().status == TSL_OK);
  w.masterBack();
  w.hear("yield " + who + " epoch=7");
  w.hear("left " + who);
  w.hear("job-ended a");
}

TEST_CASE("FF-D10: a later session voids the orders of an earlier one", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto old = w.master.daemon();
  w.masterGone();
  w.masterBack();
  auto request = old.releaseRequest();
  CHECK_THROWS(request.send().wait(w.l.scope));
}

TEST_CASE("heartbeats say what is free on the devices now", "[node]") {
  Loop l;
  FakeMaster master(l);
  master.heartbeatUs = 1000;
  TestNode node(l, &master);
  node.start();
  l.pumpUntil([&] { return master.free[1] == FakeCards::kTotal; });
  node.cards.use(::getpid(), 1, 1000);
  l.pumpUntil([&] { return master.free[1] == FakeCards::kTotal - 1000; });
  CHECK(master.free[0] == FakeCards::kTotal);
}

namespace {

// A save of job a that is held, and whose master has gone; the next one is of a new generation.
struct MovesOn {
  std::unique_ptr<Program> a;
  kj::Maybe<FakeMaster::Order> cut;

  explicit MovesOn(World& w) : a(w.node.joined("a", "0", "fake")) {
    w.node.cards.use(a->pid(), 0, 1 << 20);
    auto quiet = w.master.quiesce("a").wait(w.l.scope);
    REQUIRE(quiet.members.size() == 1);
    w.node.backend.fake.hold("save");
    cut = w.master.save("a", quiet.members[0].member);
    w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
    w.masterGone();
    w.master.generation = {2, 78};
  }
};

}  // namespace

TEST_CASE("FF-D10: the next master is told when a move of an earlier one has ended", "[node]") {
  World w;
  MovesOn moving(w);
  w.masterBack();
  auto residency = [&] { return w.master.members["a"].at(0).residency; };
  CHECK(residency() == Residency::Saving);
  w.node.backend.fake.letGo();
  w.l.pumpUntil([&] { return residency() == Residency::Saved; });
}

TEST_CASE("FF-D10: the next master is told of a move that ends between the report and the session",
          "[node]") {
  World w;
  MovesOn moving(w);
  w.master.holdEntry = true;
  w.master.listenAgain();
  auto residency = [&] {
    auto found = w.master.members.find("a");
    return found == w.master.members.end() ? Residency::Absent : found->second.at(0).residency;
  };
  w.master.members.clear();
  w.l.pumpUntil([&] { return residency() == Residency::Saving; });
  w.node.backend.fake.letGo();
  w.l.pumpUntil([&] { return !w.node.logged({"order-ended", "order=save"}).empty(); });
  w.master.letEnter();
  w.l.pumpUntil([&] { return residency() == Residency::Saved; });
}

TEST_CASE("a node whose name is taken says so", "[node]") {
  World w;
  w.master.nameIsTaken = true;
  w.master.dropConnections();
  w.l.pumpUntil([&] { return !w.node.logged({"master-down", "the name is taken"}).empty(); });
}

TEST_CASE("FF-D10: a node follows no master of an older generation", "[node]") {
  World w;
  w.masterGone();
  w.master.generation = {0, 5};
  w.master.listenAgain();
  auto sessions = w.master.sessions;
  w.l.pumpUntil([&] { return w.master.sessions > sessions; });
  w.l.pumpUntil([&] { return w.node->link().whyDown().find("generation") != std::string::npos; });
  CHECK_FALSE(w.node->link().isUp());
}

TEST_CASE("a report names all nodes that the master said the job is on", "[node]") {
  World w;
  auto a = w.node.joined("a");
  std::string own = "n1";
  CHECK(w.master.nodes["a"].empty());
  w.master.spans("a", {own, "other"});
  w.masterGone();
  w.masterBack();
  CHECK(w.master.nodes["a"] == std::vector<std::string>{own, "other"});
  w.master.spans("a", {own});
  w.masterGone();
  w.masterBack();
  CHECK(w.master.nodes["a"] == std::vector<std::string>{own});
}

TEST_CASE("a turn that ended while its caller was away is not given to it later", "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  a->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 0; });
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  CHECK(w.master.endSlice("a", 7).wait(w.l.scope).ok());  // an operator evicts it
  auto again = [&] {
    a->connect();
    REQUIRE(a->hello().status == TSL_OK);
    REQUIRE(a->join("rl", "a", "0").status == TSL_OK);
    return a->startAcquire();
  };
  again();
  auto next = w.requestOf("a");
  CHECK(w.master.grant("a", 8, {0}, {next}).wait(w.l.scope).ok());
  CHECK(a->receive().u.reply.epoch_counter == 8);
  a->disconnect();
  CHECK(a->answerTo(again()).epoch_counter == 8);
  CHECK(a->yield(8).status == TSL_OK);
}

TEST_CASE("a yield of a slice that was ended from outside is told so", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  CHECK(w.master.endSlice("a", 7).wait(w.l.scope).ok());
  auto reply = a->yield(7);
  CHECK(reply.status == TSL_NOT_ENTERED);
  CHECK(std::string(reply.detail) == "slice 1.7 was ended by an operator, or its turn was missed");
  w.enter(*a, "a", 8);
  CHECK(a->yield(7).status == TSL_STALE);
  CHECK(a->yield(8).status == TSL_OK);
}
