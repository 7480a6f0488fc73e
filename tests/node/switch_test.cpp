#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "child.h"
#include "test_node.h"

using namespace ts;
using namespace ts::test;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

// Two jobs of one process each; both have memory on device 0.
struct World {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};
  std::unique_ptr<Program> a, b;
  MemberId ofA{}, ofB{};

  World() {
    node.start();
    a = node.joined("a", "0", "fake");
    b = node.joined("b", "0", "fake");
    ofA = give(*a, "a", 10 * kGiB);
    ofB = give(*b, "b", 4 * kGiB);
  }

  // Device memory, found at the next look.
  MemberId give(Program& p, const std::string& job, std::uint64_t bytes) {
    node.cards.use(p.pid(), 0, bytes);
    auto before = master.members[job].size();
    p.startAcquire(1);
    l.pumpUntil([&] { return master.members[job].size() > before; });
    CHECK(p.receive().u.reply.status == TSL_TIMED_OUT);
    master.participants[job].request = 0;
    return master.members[job].back().member;
  }
  Outcome wait(FakeMaster::Order order) { return order.wait(l.scope); }
  std::vector<std::string> calls() { return node.backend.fake.calls(); }
  std::string did(const char* verb, const Program& p) {
    return std::string(verb) + " " + std::to_string(p.pid());
  }
  std::string pidOf(const Program& p) { return "pid=" + std::to_string(p.pid()) + " "; }
  Residency residency(MemberId id) { return node->registry().members().at(id).residency; }
};

}  // namespace

TEST_CASE("P67, P68: members are the job's processes with device memory, and those only",
          "[node]") {
  World w;
  REQUIRE(w.master.members["a"].size() == 1);
  CHECK(w.master.members["a"][0].bytes == 10 * kGiB);
  CHECK(w.master.members["a"][0].devices.size() == 1);
  Child stranger;  // a child of the test, not of a participant
  w.node.cards.use(stranger.pid(), 0, kGiB);
  CHECK(w.wait(w.master.quiesce("a")).ok());
  CHECK(w.node->registry().members().size() == 2);
}

TEST_CASE("a job is saved and restored with what it measured", "[node]") {
  World w;
  CHECK(w.wait(w.master.prepare("b", {w.ofA}, {w.ofB})).ok());
  CHECK(w.wait(w.master.quiesce("a")).ok());
  auto saved = w.wait(w.master.save("a", w.ofA));
  CHECK(saved.ok());
  REQUIRE(saved.members.size() == 1);
  CHECK(saved.members[0].residency == Residency::Saved);
  CHECK(saved.members[0].bytes == 10 * kGiB);
  CHECK(w.node.cards.memory(0)->usedBytes == 4 * kGiB);
  CHECK(w.node->registry().savedBytes() == 10 * kGiB);
  CHECK(w.wait(w.master.restore("a", w.ofA)).ok());
  CHECK(w.residency(w.ofA) == Residency::Quiet);
  CHECK(w.wait(w.master.release("a")).ok());
  CHECK(w.calls() == std::vector<std::string>{w.did("quiesce", *w.a), w.did("save", *w.a),
                                              w.did("restore", *w.a), w.did("release", *w.a)});
}

TEST_CASE("FF-A2: a member that cannot be stopped lets the others go", "[node]") {
  World w;
  auto second = w.node.joined("a", "0", "fake");
  w.give(*second, "a", kGiB);
  w.node.backend.fake.failIn(
      1, "quiesce", {.code = BackendOutcome::Code::TimedOut, .detail = "it does not stop"});
  auto outcome = w.wait(w.master.quiesce("a"));
  CHECK(outcome.code == Outcome::Code::Failed);
  CHECK(outcome.cause == Cause::Overdue);
  CHECK(outcome.detail.find("it does not stop") != std::string::npos);
  for (const auto& m : outcome.members) CHECK(m.residency == Residency::Resident);
  CHECK(w.calls().back().starts_with("release"));
}

TEST_CASE("FF-A11: processes that appear while others are stopped are stopped too", "[node]") {
  World w;
  auto late = w.node.joined("a", "0", "fake");
  w.node.backend.fake.hold("quiesce");
  auto order = w.master.quiesce("a");
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  w.node.cards.use(late->pid(), 0, kGiB);
  w.node.backend.fake.letGo();
  auto outcome = w.wait(kj::mv(order));
  CHECK(outcome.ok());
  REQUIRE(outcome.members.size() == 2);
  for (const auto& m : outcome.members) CHECK(m.residency == Residency::Quiet);
}

TEST_CASE("FF-A11: processes that appear without end make the switch fail with all of them running",
          "[node]") {
  World w;
  std::vector<std::unique_ptr<Program>> late;
  for (int i = 0; i < 12; ++i) late.push_back(w.node.joined("a", "0", "fake"));
  std::atomic<std::size_t> next = 0;
  w.node.backend.duringQuiesce = [&] {
    if (next < late.size()) w.node.cards.use(late[next++]->pid(), 0, kGiB / 4);
  };
  auto outcome = w.wait(w.master.quiesce("a"));
  CHECK(outcome.code == Outcome::Code::Failed);
  CHECK(outcome.detail.find("new processes of the job appeared in 10 looks") != std::string::npos);
  REQUIRE(outcome.members.size() >= 10);
  for (const auto& m : outcome.members) CHECK(m.residency == Residency::Resident);
}

TEST_CASE("memory that is still held after a save is not believed to be free", "[node]") {
  World w;
  w.node.cards.setSticky(true);
  CHECK(w.wait(w.master.quiesce("a")).ok());
  auto outcome = w.wait(w.master.save("a", w.ofA));
  CHECK(outcome.code == Outcome::Code::Failed);
  CHECK(outcome.cause == Cause::NotReleased);
  CHECK(outcome.need == 10 * kGiB);
  CHECK(outcome.detail.find(std::to_string(w.a->pid())) != std::string::npos);
}

TEST_CASE("what could not be measured after a save is not believed to be free", "[node]") {
  using Blind = FakeCards::Blind;
  auto blind = GENERATE(Blind::All, Blind::Sizes);
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  w.node.cards.setSticky(blind == Blind::Sizes);
  w.node.cards.setBlind(blind);
  auto outcome = w.wait(w.master.save("a", w.ofA));
  CHECK(outcome.code == Outcome::Code::Failed);
  CHECK(outcome.cause == Cause::NotReleased);
  CHECK(outcome.detail.find("measured") != std::string::npos);
}

TEST_CASE("nothing is restored, and no room is promised, on a device that cannot be measured",
          "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  CHECK(w.wait(w.master.save("a", w.ofA)).ok());
  w.node.cards.setBlind(FakeCards::Blind::All);
  auto before = w.calls().size();
  for (auto outcome :
       {w.wait(w.master.restore("a", w.ofA)), w.wait(w.master.prepare("a", {w.ofB}, {w.ofA}))}) {
    CHECK(outcome.code == Outcome::Code::Refused);
    CHECK(outcome.cause == Cause::NoDeviceMemory);
    CHECK(outcome.detail == "device 0 cannot be measured: fake cards");
  }
  CHECK(w.calls().size() == before);
}

TEST_CASE("FF-A1: nothing is restored where the memory is short, and the holders are named",
          "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  CHECK(w.wait(w.master.save("a", w.ofA)).ok());
  Child stranger;
  w.node.cards.use(stranger.pid(), 0, 8 * kGiB);
  auto before = w.calls().size();
  auto outcome = w.wait(w.master.restore("a", w.ofA));
  CHECK(outcome.code == Outcome::Code::Refused);
  CHECK(outcome.cause == Cause::NoDeviceMemory);
  CHECK(outcome.need == 10 * kGiB);
  CHECK(outcome.free == 4 * kGiB);
  CHECK(outcome.detail.find("pid " + std::to_string(stranger.pid()) + " (no job)") !=
        std::string::npos);
  CHECK(w.calls().size() == before);
  stranger.kill();
  w.node.cards.use(stranger.pid(), 0, 0);
  CHECK(w.wait(w.master.restore("a", w.ofA)).ok());
}

TEST_CASE("FF-C2: a prepare without host room changes nothing", "[node]") {
  World w;
  auto config = w.node.config;
  config.hostBudget = 9 * kGiB;
  w.node->reconfigure(config);
  auto outcome = w.wait(w.master.prepare("b", {w.ofA}, {w.ofB}));
  CHECK(outcome.code == Outcome::Code::Refused);
  CHECK(outcome.cause == Cause::NoHostMemory);
  CHECK(outcome.need == 10 * kGiB);
  CHECK(outcome.free == 9 * kGiB);
  CHECK(w.calls().empty());
  CHECK(w.wait(w.master.prepare("a", {w.ofB}, {w.ofA})).ok());
}

TEST_CASE("a prepare is refused where a snapshot is not what it was", "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  CHECK(w.wait(w.master.save("a", w.ofA)).ok());
  w.node.backend.fake.place(w.a->pid(), TargetState::Failed);
  auto outcome = w.wait(w.master.prepare("a", {w.ofB}, {w.ofA}));
  CHECK(outcome.code == Outcome::Code::Refused);
  CHECK(outcome.detail.find(std::to_string(w.a->pid())) != std::string::npos);
}

TEST_CASE("FF-A4, FF-D13: a call that hangs delays no other job and no program", "[node]") {
  World w;
  w.node.backend.fake.hold("save");
  CHECK(w.wait(w.master.quiesce("a")).ok());
  auto hanging = w.master.save("a", w.ofA);
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.wait(w.master.quiesce("b")).ok());
  CHECK(w.wait(w.master.release("b")).ok());
  CHECK(w.b->call(message(TSL_STATUS)).status == TSL_OK);
  w.node.backend.fake.letGo();
  CHECK(w.wait(kj::mv(hanging)).ok());
}

TEST_CASE("FF-A3: a call past its deadline is answered overdue, goes on, and its end is told",
          "[node]") {
  Loop l;
  FakeMaster master(l);
  TestNode node(l, &master);
  node.config.saveDeadline = std::chrono::milliseconds(1);
  node.start();
  auto a = node.joined("a", "0", "fake");
  node.cards.use(a->pid(), 0, kGiB);
  auto quiet = master.quiesce("a").wait(l.scope);
  REQUIRE(quiet.members.size() == 1);
  node.backend.fake.hold("save");
  auto operation = std::to_string(master.nextOperation);
  auto late = master.save("a", quiet.members[0].member).wait(l.scope);
  CHECK(late.code == Outcome::Code::Refused);
  CHECK(late.cause == Cause::Overdue);
  CHECK(node->orders().overdue().size() == 1);
  CHECK(master.release("a").wait(l.scope).cause == Cause::Busy);
  node.backend.fake.letGo();
  l.pumpUntil([&] { return master.heard("finished " + operation + " ok"); });
  CHECK(node->orders().overdue().empty());
}

TEST_CASE("FF-A20: an order is obeyed once, however often it comes", "[node]") {
  World w;
  w.node.backend.fake.hold("quiesce");
  auto operation = w.master.nextOperation;
  auto first = w.master.quiesce("a");
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  w.master.nextOperation = operation;
  auto meanwhile = w.wait(w.master.quiesce("a"));
  CHECK(meanwhile.cause == Cause::Busy);
  w.node.backend.fake.letGo();
  CHECK(w.wait(kj::mv(first)).ok());
  w.l.pumpUntil([&] { return w.master.heard("finished " + std::to_string(operation) + " ok"); });
  w.master.nextOperation = operation;
  auto again = w.wait(w.master.quiesce("a"));
  CHECK(again.ok());
  CHECK(again.members.size() == 1);
  CHECK(w.calls() == std::vector<std::string>{w.did("quiesce", *w.a)});
}

TEST_CASE("FF-D10: an order older than the last of its job is stale", "[node]") {
  World w;
  auto skipped = w.master.nextOperation++;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  w.master.nextOperation = skipped;
  auto stale = w.wait(w.master.release("a"));
  CHECK(stale.code == Outcome::Code::Refused);
  CHECK(stale.cause == Cause::Stale);
  CHECK(w.residency(w.ofA) == Residency::Quiet);
}

TEST_CASE("orders for a job that is not here say that it is gone", "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("nosuch")).code == Outcome::Code::Gone);
}

TEST_CASE("a grant unlocks what was restored before the program is told", "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  auto request = w.a->startAcquire();
  w.l.pumpUntil([&] { return w.master.participants["a"].request != 0; });
  CHECK(w.wait(w.master.grant("a", 7, {0}, {w.master.participants["a"].request})).ok());
  CHECK(w.a->answerTo(request).status == TSL_OK);
  CHECK(w.residency(w.ofA) == Residency::Resident);
  CHECK(w.calls().back() == w.did("release", *w.a));
}

TEST_CASE("a member that dies is told, and its device when it was measured clear", "[node]") {
  World w;
  auto id = std::to_string(std::uint64_t(w.ofA));
  w.a->kill();
  w.l.pumpUntil([&] { return w.master.heard("member-cleared " + id); });
  auto died = std::ranges::find(w.master.told, "member-died " + id);
  auto cleared = std::ranges::find(w.master.told, "member-cleared " + id);
  CHECK(died < cleared);
  w.l.pumpUntil([&] { return w.master.heard("job-ended a"); });
}

TEST_CASE("a member that has died keeps its device while nobody can say that it is free",
          "[node]") {
  World w;
  auto id = std::to_string(std::uint64_t(w.ofA));
  auto isTold = [&] { return !w.node.logged({"not-released", w.pidOf(*w.a), "device=0"}).empty(); };
  SECTION("because its memory is still held") {
    w.node.cards.keepTheDead(true);
    w.a->kill();
    w.l.pumpUntil(isTold);
    CHECK(w.node.logged({"not-released"}).find("bytes=" + std::to_string(10 * kGiB)) !=
          std::string::npos);
    CHECK_FALSE(w.master.heard("member-cleared " + id));
    w.node.cards.keepTheDead(false);
  }
  SECTION("because nothing can be measured") {
    w.node.cards.setBlind(FakeCards::Blind::All);
    w.a->kill();
    w.l.pumpUntil(isTold);
    CHECK_FALSE(w.master.heard("member-cleared " + id));
    w.node.cards.setBlind(FakeCards::Blind::No);
  }
  SECTION("also after a restart of the daemon") {
    w.node.cards.keepTheDead(true);
    w.a->kill();
    w.l.pumpUntil(isTold);
    w.node.restart();
    CHECK_FALSE(w.master.heard("member-cleared " + id));
    w.node.cards.keepTheDead(false);
  }
  w.l.pumpUntil([&] { return w.master.heard("member-cleared " + id); });
  w.l.pumpUntil([&] { return w.master.heard("job-ended a"); });
}

TEST_CASE("FF-A5: a job that is killed leaves the device first", "[node]") {
  World w;
  CHECK(w.wait(w.master.kill("a")).ok());
  w.l.pumpUntil([&] { return w.master.heard("job-ended a"); });
  CHECK(w.calls() == std::vector<std::string>{w.did("quiesce", *w.a), w.did("save", *w.a),
                                              w.did("discard", *w.a)});
}

TEST_CASE("a job in the middle of a call that hangs can be killed", "[node]") {
  World w;
  w.node.backend.fake.hold("save");
  CHECK(w.wait(w.master.quiesce("a")).ok());
  auto hanging = w.master.save("a", w.ofA);
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.wait(w.master.kill("a")).ok());
  w.l.pumpUntil(
      [&] { return w.master.heard("member-died " + std::to_string(std::uint64_t(w.ofA))); });
  w.node.backend.fake.letGo();
  w.wait(kj::mv(hanging));
}

TEST_CASE("every order that asks the driver is overdue at its limit, and its end is told",
          "[node]") {
  Loop l;
  FakeMaster master(l);
  TestNode node(l, &master);
  node.callLimit = 1 * kj::MILLISECONDS;
  node.start();
  auto a = node.joined("a", "0", "fake");
  node.cards.use(a->pid(), 0, kGiB);
  auto quiet = master.quiesce("a").wait(l.scope);
  REQUIRE(quiet.members.size() == 1);
  auto member = quiet.members[0].member;
  node.backend.fake.hold(GENERATE("release", "probe"));
  auto operation = std::to_string(master.nextOperation);
  auto order = node.backend.fake.holds("probe") ? master.prepare("a", {member}, {})
               : GENERATE(true, false)          ? master.release("a")
                                                : master.grant("a", 7, {0}, {});
  auto late = order.wait(l.scope);
  CHECK(late.cause == Cause::Overdue);
  CHECK(node->orders().overdue().size() == 1);
  node.backend.fake.letGo();
  l.pumpUntil([&] { return master.heard("finished " + operation + " ok"); });
  CHECK(node->orders().overdue().empty());
}

TEST_CASE("a kill that does not reach a process says which, and why", "[node]") {
  Loop l;
  FakeMaster master(l);
  TestNode node(l, &master);
  node.signal = [](int, int) { return EPERM; };
  node.start();
  auto a = node.joined("a");
  auto outcome = master.kill("a").wait(l.scope);
  CHECK(outcome.code == Outcome::Code::Failed);
  CHECK(outcome.detail ==
        "kill of rl/a did not reach pid " + std::to_string(a->pid()) + ": Operation not permitted");
}

TEST_CASE("a node that cannot write down what it does begins nothing new, and faults nobody",
          "[node]") {
  World w;
  auto p = w.node.joined("p", "1");
  w.node.room = TestNode::Room::Little;
  auto refused = w.master.prepare("p", {}, {}).wait(w.l.scope);
  CHECK(refused.code == Outcome::Code::Refused);
  CHECK(refused.cause == Cause::NoRecord);
  CHECK(refused.detail == "no room for 1 bytes in /full: make room there");
  auto q = w.node.program();
  auto joining = q->join("rl", "q", "1");
  CHECK(joining.status == TSL_UNAVAILABLE);
  CHECK(std::string(joining.detail) == refused.detail);
  CHECK(w.node->registry().jobs().count({"rl", "q"}) == 0);
  CHECK(w.master.grant("p", 1, {1}, {}).wait(w.l.scope).ok());  // needs no more than it has
  w.node.room = TestNode::Room::Enough;
  CHECK(w.master.prepare("p", {}, {}).wait(w.l.scope).ok());
  CHECK(q->join("rl", "q", "1").status == TSL_OK);
}

TEST_CASE("an order that cannot be recorded is refused, not failed, and may come again", "[node]") {
  World w;
  auto p = w.node.joined("p", "1");
  w.node.room = TestNode::Room::None;
  auto operation = w.master.nextOperation;
  auto refused = w.master.grant("p", 1, {1}, {}).wait(w.l.scope);
  CHECK(refused.code == Outcome::Code::Refused);
  CHECK(refused.cause == Cause::NoRecord);
  CHECK(w.node->registry().grantedTo(1) == nullptr);
  w.node.room = TestNode::Room::Enough;
  w.master.nextOperation = operation;
  CHECK(w.master.grant("p", 1, {1}, {}).wait(w.l.scope).ok());
}

TEST_CASE("a booking that is dropped while its prepare still looks is not made", "[node]") {
  World w;
  auto config = w.node.config;
  config.hostBudget = 12 * kGiB;
  w.node->reconfigure(config);
  w.node.backend.fake.hold("probe");
  auto late = w.master.prepare("b", {w.ofA}, {});
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.wait(w.master.dropBooking("b")).ok());
  w.node.backend.fake.letGo();
  CHECK(w.wait(kj::mv(late)).cause == Cause::Stale);
  CHECK(w.wait(w.master.prepare("a", {w.ofB}, {})).ok());  // would not fit beside the other
}

TEST_CASE("nobody is let into a slice that was ended before it began", "[node]") {
  World w;
  auto request = w.a->startAcquire();
  w.l.pumpUntil([&] { return w.master.participants["a"].request != 0; });
  CHECK(w.wait(w.master.quiesce("a")).ok());
  w.node.backend.fake.hold("release");
  auto number = w.master.participants["a"].request;
  auto granting = w.master.grant("a", 7, {0}, {number});
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.wait(w.master.endSlice("a", 7)).ok());
  w.node.backend.fake.letGo();
  auto outcome = w.wait(kj::mv(granting));
  CHECK(outcome.code == Outcome::Code::Refused);
  CHECK(outcome.cause == Cause::Stale);
  REQUIRE(outcome.members.size() == 1);
  CHECK(outcome.members[0].residency == Residency::Resident);
  w.master.refuse(number, Cause::Evicted, "");
  CHECK(w.a->answerTo(request).status == TSL_EVICTED);
}

TEST_CASE("a node that cannot write anything down gives back all the same", "[node]") {
  World w;
  auto config = w.node.config;
  config.hostBudget = 12 * kGiB;
  w.node->reconfigure(config);
  CHECK(w.wait(w.master.prepare("b", {w.ofA}, {})).ok());
  SECTION("what a grant would have dropped") {
    w.node.room = TestNode::Room::None;
    CHECK(w.wait(w.master.grant("b", 7, {0}, {})).cause == Cause::NoRecord);
  }
  SECTION("a booking") {
    w.node.room = TestNode::Room::None;
    CHECK(w.wait(w.master.dropBooking("b")).ok());
  }
  SECTION("a slice") {
    CHECK(w.wait(w.master.grant("b", 7, {0}, {})).ok());
    w.node.room = TestNode::Room::None;
    w.wait(w.master.endSlice("b", 7));
    CHECK(w.node->registry().grantedTo(0) == nullptr);
  }
  w.node.room = TestNode::Room::Enough;
  CHECK(w.wait(w.master.prepare("a", {w.ofB}, {})).ok());
  CHECK(w.wait(w.master.grant("a", 8, {0}, {})).ok());
}

TEST_CASE("a turn or a yield that cannot be written down has not happened", "[node]") {
  World w;
  auto request = w.a->startAcquire();
  w.l.pumpUntil([&] { return w.master.participants["a"].request != 0; });
  auto known = w.master.participants["a"];
  auto isInside = [&] {
    ParticipantId id{known.participant};
    return w.node->registry().participants().at(id).entered.has_value();
  };
  SECTION("a turn") {
    CHECK(w.wait(w.master.quiesce("a")).ok());
    w.node.backend.fake.hold("release");
    auto granting = w.master.grant("a", 7, {0}, {known.request});
    w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
    w.node.room = TestNode::Room::None;
    w.node.backend.fake.letGo();
    CHECK(w.wait(kj::mv(granting)).cause == Cause::NoRecord);
    CHECK_FALSE(isInside());
  }
  SECTION("a yield") {
    CHECK(w.wait(w.master.grant("a", 7, {0}, {known.request})).ok());
    CHECK(w.a->answerTo(request).status == TSL_OK);
    w.node.room = TestNode::Room::None;
    CHECK(w.a->yield(7).status == TSL_INTERNAL);
    CHECK(isInside());
    w.node.room = TestNode::Room::Enough;
    CHECK(w.a->yield(7).status == TSL_OK);
    w.l.pumpUntil([&] { return w.master.count("yield") == 1; });
  }
}

TEST_CASE("of a process whose memory went the driver is asked one question at a time", "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  w.node.backend.fake.hold("state");
  w.node.cards.use(w.a->pid(), 0, kGiB);  // a save that somebody else had begun goes on
  for (int look = 0; look < 3; ++look) {
    CHECK(w.wait(w.master.quiesce("b")).ok());
    CHECK(w.wait(w.master.release("b")).ok());
  }
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.node.backend.fake.held() == 1);
  w.node.backend.fake.place(w.a->pid(), TargetState::Saved);
  w.node.backend.fake.letGo();
  w.l.pumpUntil([&] { return w.residency(w.ofA) == Residency::Saved; });
}

TEST_CASE("what was read of a member before an order of it does not undo what the order found",
          "[node]") {
  World w;
  CHECK(w.wait(w.master.quiesce("a")).ok());
  w.node.backend.fake.readEarly();
  w.node.backend.fake.hold("state");
  w.node.cards.use(w.a->pid(), 0, kGiB);  // its memory went: the driver is asked where it is
  CHECK(w.wait(w.master.quiesce("b")).ok());
  w.l.pumpUntil([&] { return w.node.backend.fake.isHeld(); });
  CHECK(w.wait(w.master.release("a")).ok());
  CHECK(w.residency(w.ofA) == Residency::Resident);
  w.node.backend.fake.letGo();
  w.l.pumpUntil([&] { return w.node.backend.fake.held() == 0; });
  for (int round = 0; round < 3; ++round) {  // the answer is heard meanwhile
    CHECK(w.wait(w.master.release("b")).ok());
    CHECK(w.wait(w.master.quiesce("b")).ok());
  }
  CHECK(w.residency(w.ofA) == Residency::Resident);
}
