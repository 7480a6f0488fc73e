// Nodes that vanish and return, masters that start anew.
#include "master/house.h"

using namespace ts;
using namespace ts::test;

TEST_CASE("a node whose connection is lost is suspect, and its job holds on", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.disconnect();
  house.until([&] { return house.state("n1") == NodeState::Suspect; });
  CHECK(house.phase("rl", "A") == JobPhase::Holding);

  node.connect(house.address);
  CHECK(house.state("n1") == NodeState::Up);
  CHECK(house.phase("rl", "A") == JobPhase::Holding);
  node.yield(1);
  node.acquire(1, 101);
  house.until([&] { return node.entered(1); });
}

TEST_CASE("a node that is owed the answer to a yield is suspect when its connection is lost",
          "[master]") {
  MasterConfig config;
  config.heartbeat = std::chrono::hours(1);
  config.suspectAfter = std::chrono::hours(10);
  MasterHouse house(config);
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  for (auto* node : {&n1, &n2}) {
    node->connect(house.address);
    node->join("rl", "A", 1);
  }
  for (auto* node : {&n1, &n2}) node->acquire(1, 100);
  house.until([&] { return n1.entered(1) && n2.entered(1); });
  n1.yieldUnanswered(1);  // no order follows: the slice runs on at n2
  SECTION("by the network") {
    n1.disconnect();
    house.until([&] { return house.state("n1") == NodeState::Suspect; });
    n1.connect(house.address);
    CHECK(house.state("n1") == NodeState::Up);
  }
  SECTION("by the end of the master") {
    house.restart();
  }
}

TEST_CASE("nothing is granted on a suspect node until it is back", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  n1.connect(house.address);
  n2.connect(house.address);
  n1.join("rl", "A", 1);
  n2.join("rl", "A", 1);
  n2.disconnect();
  house.until([&] { return house.state("n2") == NodeState::Suspect; });
  n1.acquire(1, 100);
  CHECK(house.phase("rl", "A") == JobPhase::Waiting);
  CHECK(n1.ordered("grant A") == 0);
  n2.connect(house.address);
  house.until([&] { return n1.entered(1); });
}

TEST_CASE("an order whose answer was lost is asked for again under its own number", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.held = "grant";
  node.acquire(1, 100);
  house.until([&] { return node.ordered("grant A") == 1; });
  node.disconnect();  // done, not answered
  house.until([&] { return house.state("n1") == NodeState::Suspect; });
  node.answerHeld();
  node.connect(house.address);
  house.until([&] { return node.ordered("grant A") == 2; });
  CHECK(node.operations.front() == node.operations.back());
  CHECK(node.entered(1));
  house.until([&] { return house.shell().orders().open() == 0; });
  CHECK(house.phase("rl", "A") == JobPhase::Holding);
}

TEST_CASE("a repeated order that still runs is ended by its late outcome", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.seeMember(11, "rl", "A", 1000);
  node.script["save"].push_back({.code = Outcome::Code::Refused, .cause = Cause::Overdue});
  node.acquire(2, 200);
  node.yield(1);
  house.until([&] { return node.ordered("save A") == 1; });
  auto saving = node.operations.back();
  house.until([&] { return house.shell().orders().open() == 1; });
  CHECK_FALSE(node.entered(2));

  auto call = node.session().finishedRequest();
  call.setOperation(std::uint64_t(saving));
  Outcome outcome;
  outcome.members.push_back({.member = MemberId{11},
                             .residency = Residency::Saved,
                             .bytes = 1000,
                             .devices = {{NodeId{}, 0}}});
  toWire(outcome, call.initOutcome());
  call.send().wait(house.loop.scope);
  house.until([&] { return node.entered(2); });
}

TEST_CASE("a node that falls silent is suspect, though its connection lives", "[master]") {
  MasterConfig config;
  config.heartbeat = std::chrono::milliseconds(2);
  config.suspectAfter = std::chrono::milliseconds(30);
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  house.until([&] { return node.heartbeats >= 2; });
  CHECK(house.state("n1") == NodeState::Up);
  node.silent = true;
  house.until([&] { return house.state("n1") == NodeState::Suspect; });
}

TEST_CASE("a node that is dead for good loses its slices, one of many suspects does not",
          "[master]") {
  MasterConfig config;
  config.heartbeat = std::chrono::milliseconds(2);
  config.suspectAfter = std::chrono::milliseconds(200);
  config.deadAfter = std::chrono::milliseconds(10);
  MasterHouse house(config);
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2"), n3(house.loop, "n3");
  for (auto* node : {&n1, &n2, &n3}) node->connect(house.address);
  n1.disconnect();
  house.until([&] { return house.state("n1") == NodeState::Dead; });
  CHECK(house.state("n2") == NodeState::Up);
}

// Nodes that are known by name only say nothing about who is cut off.
TEST_CASE("while more nodes are away than here the master is the one cut off", "[master]") {
  MasterConfig config;
  config.heartbeat = std::chrono::milliseconds(2);
  config.suspectAfter = std::chrono::milliseconds(200);
  config.deadAfter = std::chrono::milliseconds(1);
  MasterHouse house(config);
  for (const char* name : {"old1", "old2", "old3"}) house.shell().directory().node(name);
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2"), n3(house.loop, "n3");
  for (auto* node : {&n1, &n2, &n3}) node->connect(house.address);
  n1.disconnect();
  n2.disconnect();
  house.until([&] {
    return house.state("n1") == NodeState::Suspect && house.state("n2") == NodeState::Suspect;
  });
  auto beats = n3.heartbeats;
  house.until([&] { return n3.heartbeats > beats + 20; });  // rounds of the housekeeping
  CHECK(house.state("n1") == NodeState::Suspect);
  CHECK(house.state("n2") == NodeState::Suspect);
  n2.connect(house.address);
  house.until([&] { return house.state("n1") == NodeState::Dead; });
}

TEST_CASE("a second daemon of the same name is refused while the first answers", "[master]") {
  MasterHouse house;
  ScriptedNode first(house.loop, "n1"), second(house.loop, "n1");
  first.instance = 1;
  second.instance = 2;
  first.connect(house.address);
  auto why = second.refusalOf(house.address);
  CHECK_THAT(why, Catch::Contains("node \"n1\" is here already, from 127.0.0.1:") &&
                      Catch::Contains("this one comes from 127.0.0.1:") &&
                      Catch::Contains("`name`"));
  CHECK(first.join("rl", "A", 1).ok());
}

TEST_CASE("a daemon that began anew takes the place of a session that nobody answers on",
          "[master]") {
  MasterConfig config;
  config.suspectAfter = std::chrono::milliseconds(20);
  config.heartbeat = std::chrono::hours(1);
  MasterHouse house(config);
  ScriptedNode first(house.loop, "n1"), second(house.loop, "n1");
  first.instance = 1;
  second.instance = 2;
  first.connect(house.address);
  first.silent = true;
  second.connect(house.address);
  CHECK(second.join("rl", "A", 1).ok());
}

TEST_CASE("the master shows what is free on a node as it is now", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  auto beat = node.session().heartbeatRequest();
  auto free = beat.initFree(1);
  free[0].setIndex(0);
  free[0].setBytes(123);
  beat.send().wait(house.loop.scope);
  CHECK(house.shell().directory().findNode("n1")->devices.at(0).freeBytes == 123);
}

TEST_CASE("a later session of a node ends the earlier one", "[master]") {
  MasterHouse house;
  ScriptedNode first(house.loop, "n1"), second(house.loop, "n1");
  first.connect(house.address);
  second.connect(house.address);
  auto call = first.session().heartbeatRequest();
  CHECK_THROWS(call.send().wait(house.loop.scope));
  CHECK(house.state("n1") == NodeState::Up);
  CHECK(second.join("rl", "A", 1).ok());
}

TEST_CASE("P43: a new master learns from its nodes who holds and who waits, in order", "[master]") {
  MasterConfig config;
  config.recoveryGrace = std::chrono::milliseconds(1);
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.join("rl", "C", 3);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(3, 300);  // C before B
  node.acquire(2, 200);
  Epoch held = node.epoch(1);
  Generation before = node.generation;

  house.restart();
  node.disconnect();
  node.connect(house.address);
  CHECK(node.generation.number == before.number + 1);
  CHECK(house.phase("rl", "A") == JobPhase::Holding);
  CHECK(house.phase("rl", "B") == JobPhase::Waiting);
  node.yieldWith(1, held);
  house.until([&] { return node.entered(3); });
  CHECK_FALSE(node.entered(2));
  CHECK(node.epoch(3) > held);
  node.yield(3);
  house.until([&] { return node.entered(2); });
}

TEST_CASE("a new master grants nothing before every node of the job has reported", "[master]") {
  MasterConfig config;
  config.recoveryGrace = std::chrono::milliseconds(1);
  MasterHouse house(config);
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  n1.connect(house.address);
  n2.connect(house.address);
  n1.join("rl", "A", 1);
  n2.join("rl", "A", 1);
  house.until([&] { return n1.spans["A"].size() == 2; });  // n1 learns of n2 without a grant
  CHECK(n2.spans["A"] == std::vector<std::string>{"n1", "n2"});

  house.restart();
  for (auto* node : {&n1, &n2}) node->disconnect();
  n1.connect(house.address);
  n1.acquire(1, 100);
  CHECK(house.phase("rl", "A") == JobPhase::Waiting);
  CHECK(n1.ordered("grant A") == 0);
  CHECK(house.state("n2") == NodeState::Named);
  n2.connect(house.address);
  house.until([&] { return n1.entered(1); });
}

TEST_CASE("what all nodes of a job know, a new master tells none of them", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  for (auto* node : {&n1, &n2}) {
    node->connect(house.address);
    node->join("rl", "A", 1);
  }
  house.until([&] { return n1.spansTold == 1 && n2.spansTold == 1; });

  house.restart();
  for (auto* node : {&n1, &n2}) node->disconnect();
  for (auto* node : {&n1, &n2}) node->connect(house.address);
  n1.acquire(1, 100);
  house.until([&] { return n1.entered(1); });
  CHECK(n1.spansTold == 1);
  CHECK(n2.spansTold == 1);
}

TEST_CASE("a node that does not know what the others do is told", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  for (auto* node : {&n1, &n2}) {
    node->connect(house.address);
    node->join("rl", "A", 1);
  }
  house.until([&] { return n1.spansTold == 1 && n2.spansTold == 1; });
  n2.disconnect();
  n2.spans.clear();
  n2.connect(house.address);
  house.until([&] { return n2.spansTold == 2; });
  CHECK(n2.spans["A"] == std::vector<std::string>{"n1", "n2"});
  CHECK(n1.spansTold == 1);
}

TEST_CASE("nodes know that a gang has gathered before it has its turn", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  for (auto* node : {&n1, &n2}) {
    node->gangs["A"] = 2;
    node->connect(house.address);
  }
  n1.join("rl", "A", 1);
  n1.acquire(1, 100);
  house.until([&] { return n1.gathered["A"] == wire::Gathering::NO; });
  n2.join("rl", "A", 1);
  house.until([&] { return n1.entered(1); });
  CHECK(n1.gathered["A"] == wire::Gathering::YES);
  house.until([&] { return n2.gathered["A"] == wire::Gathering::YES; });
}

TEST_CASE("a join that is withdrawn takes the gathering back, whatever a node still believes",
          "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  for (auto* node : {&n1, &n2}) {
    node->gangs["A"] = 2;
    node->connect(house.address);
    node->join("rl", "A", 1);
  }
  house.until([&] { return n1.gathered["A"] == wire::Gathering::YES; });
  n2.disconnect();
  n2.withdraw("rl", "A", 1);
  n2.connect(house.address);
  house.until([&] { return n1.gathered["A"] == wire::Gathering::NO; });
  n1.disconnect();
  n1.gathered["A"] = wire::Gathering::YES;
  n1.connect(house.address);
  house.until([&] { return n1.gathered["A"] == wire::Gathering::NO; });
  n1.acquire(1, 100);
  CHECK(house.phase("rl", "A") != JobPhase::Holding);
  CHECK(n1.ordered("grant A") == 0);
}

TEST_CASE("to a new master the word of a node that was told counts, and else a place in the queue",
          "[master]") {
  for (auto said : {wire::Gathering::YES, wire::Gathering::NO, wire::Gathering::UNKNOWN}) {
    MasterConfig config;
    config.recoveryGrace = std::chrono::milliseconds(0);
    MasterHouse house(config);
    ScriptedNode n1(house.loop, "n1");
    n1.gangs["A"] = 2;
    n1.connect(house.address);
    n1.join("rl", "A", 1);
    n1.acquire(1, 100);
    house.until([&] { return n1.gathered["A"] == wire::Gathering::NO; });
    n1.disconnect();
    n1.gathered["A"] = said;
    house.restart();
    n1.connect(house.address);
    if (said != wire::Gathering::NO) house.until([&] { return n1.entered(1); });
    CHECK(n1.entered(1) == (said != wire::Gathering::NO));
  }
}

TEST_CASE("a node learns that the rest of a job is gone", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  n1.connect(house.address);
  n2.connect(house.address);
  n1.join("rl", "A", 1);
  n2.join("rl", "A", 1);
  n2.leave(1);
  n2.endJob("rl", "A");
  house.until([&] {
    return n1.spans["A"] == std::vector{std::string("n1")};
  });  // at once: nothing else happens
}

TEST_CASE("a grant that nobody is in is taken back by the next master", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.disconnect();
  node.forgetYield(
      1);  // the earlier master had heard of it, and died before it could end the slice
  house.restart();
  node.connect(house.address);
  node.acquire(2, 200);
  house.until([&] { return node.entered(2); });
  CHECK(node.ordered("end-slice A") == 1);
}

TEST_CASE("a master that a node has outlived takes a generation above", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.generation = {41, 7};
  node.connect(house.address);
  CHECK(node.generation.number == 42);
  CHECK(house.store.lastGeneration() == 42);
}

TEST_CASE("a node that has seen the last generation there can be is refused", "[master]") {
  MasterHouse house;
  ScriptedNode mine(house.loop, "mine"), odd(house.loop, "odd");
  mine.connect(house.address);
  odd.generation = {0xffffffff, 7};
  CHECK_THAT(odd.refusalOf(house.address), Catch::Contains("no generation above 4294967295"));
  CHECK(house.store.lastGeneration() == 1);
  CHECK(mine.join("rl", "A", 1).ok());
}

TEST_CASE("FF-D10, P43: of two masters with one number a node follows one", "[master]") {
  MasterHouse house;
  Store elsewhere(":memory:");
  Master other(MasterNeeds{house.loop.port, house.config, elsewhere, house.workers, *house.auth,
                           house.log.log, "test"});
  std::string otherAddress = other.listeners.tcp("127.0.0.1:0", house.loop.scope);
  ScriptedNode a(house.loop, "a"), b(house.loop, "b");
  a.connect(house.address);
  b.connect(otherAddress);
  REQUIRE(a.generation.number == b.generation.number);
  a.disconnect();
  CHECK_THAT(a.refusalOf(otherAddress), Catch::Contains("another master"));
  a.connect(house.address);
}

TEST_CASE("a master with nodes of its own starts anew above a node that has seen more",
          "[master]") {
  MasterHouse house;
  ScriptedNode mine(house.loop, "mine"), other(house.loop, "other");
  mine.connect(house.address);
  other.generation = {9, 1};
  other.connect(house.address);
  CHECK(other.generation.number == 10);
  CHECK_THROWS(mine.session().heartbeatRequest().send().wait(house.loop.scope));
  mine.disconnect();
  mine.connect(house.address);
  CHECK(mine.generation == other.generation);
}

TEST_CASE("an exception of a node is no driver error: the order is given again", "[master]") {
  using Type = kj::Exception::Type;
  for (auto type : {Type::OVERLOADED, Type::FAILED}) {
    MasterHouse house;
    ScriptedNode node(house.loop, "n1");
    node.connect(house.address);
    node.join("rl", "A", 1);
    node.join("rl", "B", 2);
    node.seeMember(11, "rl", "A", 1000);
    node.thrown["prepare"] = {type};
    node.acquire(2, 100);
    house.until(
        [&] { return node.ordered("prepare B") == 1 && house.shell().orders().open() == 0; });
    auto job = house.shell().directory().find(JobName{"rl", "B"})->id;
    CHECK(house.shell().cluster().view(job)->cause == Cause::NodeSuspect);
    house.until([&] { return node.entered(2); });
    CHECK(node.refusals.empty());
  }
}
