#include <unistd.h>

#include <catch2/catch.hpp>

#include "node_world.h"

using namespace ts;
using namespace ts::test;

// Daemons that end and start anew, and what the next one makes of it.

TEST_CASE("a join that was in flight when its daemon was killed has not been one", "[node]") {
  World w;
  w.master.holdJoins = true;
  auto a = w.node.program();
  a->send(joinMessage("rl", "a"));
  w.hear("join a uid=" + std::to_string(::getuid()));
  w.node.restart();
  CHECK(w.master.count("undone") == 1);
  w.l.pumpUntil([&] { return w.node->registry().participants().empty(); });
}

TEST_CASE("a restarted daemon knows who holds and who yielded", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto b = w.node.joined("b", "1");
  w.enter(*a, "a", 7);
  auto who = w.id("a");
  SECTION("the slice goes on") {
    w.node.restart();
    CHECK(w.master.granted["a"]);
    CHECK(w.master.participants["a"].entered);
    CHECK(w.id("a") == who);
    w.reconnect(*a);
    CHECK(a->join("rl", "a", "0").epoch_counter == 7);
    CHECK(a->yield(7).status == TSL_OK);
    w.hear("yield " + who + " epoch=7");
    // And nobody else is granted its device.
    CHECK(w.master.grant("b", 8, {0}, {}).wait(w.l.scope).code == Outcome::Code::Refused);
  }
  SECTION("a yield that nobody has heard is told") {
    w.masterGone();
    CHECK(a->yield(7).status == TSL_OK);
    w.node.stop();
    w.master.listenAgain();
    w.node.start();
    w.hear("yield " + who + " epoch=7");
  }
  SECTION("who ended meanwhile has left") {
    w.node.stop();
    a->kill();
    w.node.start();
    w.hear("left " + who + " died");
    w.hear("job-ended a");
  }
}

TEST_CASE("a restarted daemon answers an order from its record", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto operation = w.master.nextOperation;
  CHECK(w.master.quiesce("a").wait(w.l.scope).ok());
  w.node.restart();
  w.master.nextOperation = operation;
  auto again = w.master.quiesce("a").wait(w.l.scope);
  CHECK(again.ok());
  REQUIRE(again.members.size() == 1);
  CHECK(again.members[0].residency == Residency::Quiet);
}

TEST_CASE("a restarted daemon reads where the state is", "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  auto quiet = w.master.quiesce("a").wait(w.l.scope);
  REQUIRE(quiet.members.size() == 1);
  auto member = quiet.members[0].member;
  w.node.stop();
  w.node.backend.fake.place(a->pid(), TargetState::Saved);  // it ended behind the daemon's back
  w.node.start();
  auto& facts = w.master.members["a"];
  REQUIRE(facts.size() == 1);
  CHECK(facts[0].member == member);
  CHECK(facts[0].residency == Residency::Saved);
}

TEST_CASE("FF-D5: a waiter keeps its place over a restart of its daemon", "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  w.l.pumpUntil([&] { return w.node->registry().participants().begin()->second.wait->hasPlace(); });
  w.node.restart();
  CHECK(w.master.participants["a"].waiting);
  CHECK(w.master.participants["a"].request == number);
  CHECK(w.master.participants["a"].ticket == 1);
  SECTION("its caller comes back") {
    w.reconnect(*a);
    REQUIRE(a->join("rl", "a", "0").status == TSL_OK);
    auto again = a->startAcquire();
    CHECK(a->call(message(TSL_STATUS)).status == TSL_OK);
    CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
    CHECK(a->answerTo(again).epoch_counter == 7);
    CHECK(w.master.count("acquire") == 1);
  }
  SECTION("its turn comes first") {
    CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
    w.reconnect(*a);
    CHECK(a->join("rl", "a", "0").epoch_counter == 7);
    CHECK(a->acquire().epoch_counter == 7);
    w.node.restart();
    CHECK_FALSE(w.master.participants["a"].waiting);
  }
  SECTION("it is told no") {
    w.master.refuse(number, Cause::Evicted, "");
    w.node.restart();
    CHECK_FALSE(w.master.participants["a"].waiting);
  }
}

TEST_CASE("FF-D1: a waiter that does not come back after a restart of its daemon is withdrawn",
          "[node]") {
  World w;
  auto a = w.node.joined("a");
  a->startAcquire();
  auto number = w.requestOf("a");
  w.l.pumpUntil([&] { return w.node->registry().participants().begin()->second.wait->hasPlace(); });
  w.node.stop();
  w.node.grace = 1 * kj::MILLISECONDS;
  w.node.start();
  // The grace may end before the report, which then does not name it any more.
  w.l.pumpUntil([&] {
    return w.master.heard("cancel " + std::to_string(number)) ||
           (w.node->link().isUp() && !w.master.participants["a"].waiting);
  });
}

TEST_CASE("FF-D5: a waiter that no master has given a place asks the next one for it", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.masterGone();
  a->startAcquire();
  w.masterBack();
  w.hear("place of " + w.id("a"));
  w.l.pumpUntil([&] { return w.node->registry().participants().begin()->second.wait->hasPlace(); });
  w.node.restart();
  CHECK(w.master.participants["a"].ticket == 1);
  CHECK(w.master.count("acquire") == 0);
}

TEST_CASE("FF-D5: a grant that a killed daemon had begun is finished by the next", "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  REQUIRE(w.master.quiesce("a").wait(w.l.scope).ok());
  a->startAcquire();
  auto number = w.requestOf("a");
  w.l.pumpUntil([&] { return w.node->registry().participants().begin()->second.wait->hasPlace(); });
  w.node.backend.fake.hold("release");
  auto operation = w.master.nextOperation;
  auto cut = w.master.grant("a", 7, {0}, {number});
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  w.node.stop();
  w.node.backend.fake.letGo();
  w.node.start();
  w.master.nextOperation = operation;
  auto outcome = w.master.grant("a", 7, {0}, {number}).wait(w.l.scope);
  INFO(outcome.detail);
  CHECK(outcome.ok());
  REQUIRE(outcome.members.size() == 1);
  CHECK(outcome.members[0].residency == Residency::Resident);
  w.reconnect(*a);
  CHECK(a->join("rl", "a", "0", "fake").epoch_counter == 7);
  CHECK(a->acquire().epoch_counter == 7);
}

TEST_CASE("FF-D5: a grant that a killed daemon had begun is not obeyed anew when its slice is over",
          "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  REQUIRE(w.master.quiesce("a").wait(w.l.scope).ok());
  w.node.backend.fake.hold("release");
  auto operation = w.master.nextOperation;
  auto cut = w.master.grant("a", 7, {0}, {});
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  REQUIRE(w.master.endSlice("a", 7).wait(w.l.scope).ok());
  w.node.stop();
  w.node.backend.fake.letGo();
  w.node.start();
  w.master.nextOperation = operation;
  auto outcome = w.master.grant("a", 7, {0}, {}).wait(w.l.scope);
  CHECK(outcome.code == Outcome::Code::Refused);
  CHECK(outcome.cause == Cause::Stale);
  CHECK(outcome.detail == "slice 1.7 was ended before it began");
  CHECK(w.node->registry().grantedTo(0) == nullptr);
}

TEST_CASE("FF-A3: a save that a killed daemon had begun is measured by the next", "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  auto quiet = w.master.quiesce("a").wait(w.l.scope);
  REQUIRE(quiet.members.size() == 1);
  w.node.cards.setSticky(true);
  w.node.backend.fake.hold("save");
  auto operation = w.master.nextOperation;
  auto cut = w.master.save("a", quiet.members[0].member);
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  w.node.stop();
  w.node.backend.fake.letGo();
  w.node.backend.fake.place(a->pid(), TargetState::Saved);
  w.node.start();
  w.master.nextOperation = operation;
  auto outcome = w.master.save("a", quiet.members[0].member).wait(w.l.scope);
  CHECK(outcome.cause == Cause::NotReleased);
}

TEST_CASE(
    "FF-A3: what a save has left on its devices is in each report until it is seen to be gone",
    "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  auto member = w.master.quiesce("a").wait(w.l.scope).members.at(0).member;
  w.node.cards.setSticky(true);
  auto told = w.master.save("a", member).wait(w.l.scope);
  REQUIRE(told.cause == Cause::NotReleased);
  CHECK(told.members.at(0).unreleased);
  auto fact = [&] { return w.master.members["a"].at(0); };
  SECTION("to a new master") {
    w.masterGone();
    w.masterBack();
    CHECK(fact().residency == Residency::Saved);
    CHECK(fact().unreleased);
  }
  SECTION("by the next daemon") {
    w.node.restart();
    CHECK(fact().unreleased);
  }
  SECTION("not by one that sees that it is gone") {
    w.node.cards.use(a->pid(), 0, 0);
    w.node.restart();
    CHECK(fact().residency == Residency::Saved);
    CHECK_FALSE(fact().unreleased);
  }
  SECTION("and then it is told") {
    w.masterGone();
    w.masterBack();
    REQUIRE(fact().unreleased);
    w.node.cards.use(a->pid(), 0, 0);
    w.l.pumpUntil([&] { return !fact().unreleased; });
  }
  SECTION("nor when it is back") {
    CHECK(w.master.restore("a", member).wait(w.l.scope).ok());
    w.masterGone();
    w.masterBack();
    CHECK_FALSE(fact().unreleased);
  }
}

TEST_CASE("FF-A3: a save that ends after a daemon has found its process stopped is noticed",
          "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  auto member = w.master.quiesce("a").wait(w.l.scope).members.at(0).member;
  w.node.stop();
  w.node.start();
  auto residency = [&] { return w.master.members["a"].at(0).residency; };
  CHECK(residency() == Residency::Quiet);
  w.node.backend.fake.place(a->pid(), TargetState::Saved);
  w.node.cards.use(a->pid(), 0, 0);
  CHECK(w.master.prepare("a", {member}, {}).wait(w.l.scope).ok());  // looks at the devices
  w.l.pumpUntil([&] { return residency() == Residency::Saved; });
}

TEST_CASE("FF-A3: a restore that a killed daemon had begun and that ends later is noticed",
          "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "fake");
  w.node.cards.use(a->pid(), 0, 1 << 20);
  auto member = w.master.quiesce("a").wait(w.l.scope).members.at(0).member;
  REQUIRE(w.master.save("a", member).wait(w.l.scope).ok());
  w.node.stop();
  w.node.start();
  auto residency = [&] { return w.master.members["a"].at(0).residency; };
  CHECK(residency() == Residency::Saved);
  w.node.backend.fake.place(a->pid(), TargetState::Locked);
  CHECK_FALSE(w.master.prepare("a", {}, {member}).wait(w.l.scope).ok());
  w.l.pumpUntil([&] { return residency() == Residency::Quiet; });
}
