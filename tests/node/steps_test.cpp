#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "node/words.h"
#include "test_node.h"

using namespace ts;
using namespace ts::test;
using Catch::Matchers::Contains;

namespace {

constexpr uid_t kNobody = 65534;
constexpr std::uint32_t kBatch = 0xfffffffb;

tsl_message stepMessage(tsl_type type, std::uint32_t step = 0, const std::string& group = "rl",
                        const std::string& backend = "none") {
  auto m = message(type);
  auto& s = m.u.step;
  s.slurm_job = 17;
  s.slurm_step = step;
  s.gang = 0;
  s.deadline_ms = 3'600'000;
  std::strcpy(s.group, group.c_str());
  std::strcpy(s.job, step == kBatch ? "17.batch" : "17.0");
  std::strcpy(s.backend, backend.c_str());
  return m;
}

tsl_message gateMessage() {
  auto m = joinMessage("rl", "17.0");
  m.u.join.flags = TSL_JOIN_AT_GATE;
  return m;
}

struct World {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};
  std::unique_ptr<Program> daemon;

  World() {
    node.start();
    daemon = node.program();
  }
  tsl_reply begin(tsl_message m = stepMessage(TSL_STEP_BEGIN)) { return daemon->call(m); }
  std::string account(std::uint32_t step) {
    return daemon->call(stepMessage(TSL_ACCOUNT, step)).detail;
  }
  // A task that has its turn, and whose program has not started.
  std::unique_ptr<Program> passedGate(std::uint64_t epoch) {
    auto task = node.program();
    REQUIRE(task->call(gateMessage()).status == TSL_OK);
    auto request = task->startAcquire();
    l.pumpUntil([&] { return master.participants["17.0"].request != 0; });
    auto waiter = std::exchange(master.participants["17.0"].request, 0);
    REQUIRE(master.grant("17.0", epoch, {0, 1}, {waiter}).wait(l.scope).ok());
    REQUIRE(task->answerTo(request).status == TSL_OK);
    return task;
  }
  std::string participant() { return std::to_string(master.participants["17.0"].participant); }
};

}  // namespace

TEST_CASE("a step is asked for at the master, which is told nothing else", "[node]") {
  World w;
  w.daemon->send(claimMessage("1"));
  auto reply = w.begin();
  INFO(reply.detail);
  CHECK(reply.status == TSL_OK);
  CHECK(reply.bytes == std::string("TIMESLICE_DEVICES=GPU-fake-1\nNCCL_DEBUG=WARN\n").size());
  CHECK(w.master.told == std::vector<std::string>{"session n1", "admit 17.0 1"});
  REQUIRE(w.node->registry().steps().size() == 1);
  CHECK(w.node->registry().jobs().empty());
}

TEST_CASE("a step without a claim is on every device", "[node]") {
  World w;
  CHECK(w.begin().status == TSL_OK);
  CHECK(w.master.heard("admit 17.0 0 1"));
}

TEST_CASE("FF-F1: only what root started speaks for a step", "[node]") {
  World w;
  auto user = w.node.program(kNobody);
  for (auto type : {TSL_STEP_BEGIN, TSL_STEP_END, TSL_OUTLOOK, TSL_ACCOUNT}) {
    auto reply = user->call(stepMessage(type));
    CHECK(reply.status == TSL_PERMISSION);
    CHECK_THAT(reply.detail, Contains("only processes that root started"));
  }
  CHECK(user->call(gateMessage()).status == TSL_PERMISSION);
  CHECK(w.node->registry().steps().empty());
}

TEST_CASE("FF-F1: the name of a step is for its user, before the step is there, too", "[node]") {
  World w;
  auto user = w.node.program(kNobody);
  for (const char* name : {"17.0", "18.0", "18.batch", "18.interactive"}) {
    auto reply = user->call(joinMessage("rl", name));
    CHECK(reply.status == TSL_PERMISSION);
    CHECK_THAT(reply.detail, Contains("has no such step on this node"));
  }
  for (const char* name : {"18", "18.", ".0", "18.0.1", "run-18.0"}) {
    CHECK(w.node.program(kNobody)->call(joinMessage("rl", name)).status == TSL_OK);
  }
}

TEST_CASE("FF-F1: a step is named after its own job, or the first part of it, and no other",
          "[node]") {
  World w;
  auto named = [&](const char* name) {
    auto m = stepMessage(TSL_STEP_BEGIN);
    m.u.step.slurm_job = 1017;
    std::strcpy(m.u.step.job, name);
    return w.node.program()->call(m);
  };
  for (const char* name : {"1018.0", "889.0", "17.0", "99999999999.0", "run", "run-1017.0"}) {
    INFO(name);
    auto reply = named(name);
    CHECK(reply.status == TSL_PERMISSION);
    CHECK_THAT(reply.detail, Contains("a step of Slurm job 1017 cannot have the name"));
  }
  CHECK(w.node->registry().steps().empty());
  for (const char* name : {"1017.0", "1017-2.0", "1017.batch", "890.0"}) {
    CHECK(named(name).status == TSL_OK);
  }
}

TEST_CASE("the account of a step outlives the daemon, with the turn that it has", "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(1);
  auto account = [&] {
    w.node.restart();
    auto asks = w.node.program();
    return std::string(asks->call(stepMessage(TSL_ACCOUNT)).detail);
  };
  CHECK_THAT(account(), Contains("1 turn, waited 0.0 s"));
  CHECK(w.node.program()->call(stepMessage(TSL_STEP_END)).status == TSL_OK);
  CHECK(account().empty());
}

TEST_CASE("the master is told whose step a job is, also after a restart", "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(1);
  CHECK(w.node->registry().jobs().at({"rl", "17.0"}).spec.slurmJob == 17);
  w.node.restart();
  CHECK(w.node->registry().jobs().at({"rl", "17.0"}).spec.slurmJob == 17);
  auto other = w.node.program();
  REQUIRE(other->call(joinMessage("rl", "job-of-nobody")).status == TSL_OK);
  CHECK(w.node->registry().jobs().at({"rl", "job-of-nobody"}).spec.slurmJob == 0);
}

TEST_CASE("a step that the master refuses is not known afterwards", "[node]") {
  World w;
  w.master.joinAnswer = node::refusal(Cause::Forbidden, "uid 1000 may not use group \"rl\"");
  auto reply = w.begin();
  CHECK(reply.status == TSL_PERMISSION);
  CHECK_THAT(reply.detail, Contains("may not use group"));
  CHECK(w.node->registry().steps().empty());
  CHECK(w.begin(stepMessage(TSL_STEP_BEGIN, 0, "no such name")).status == TSL_INVALID);
  CHECK(w.begin(stepMessage(TSL_STEP_BEGIN, 0, "rl", "none2")).status == TSL_UNSUPPORTED);
}

TEST_CASE("a step waits for a master within its deadline, and no longer", "[node]") {
  World w;
  w.master.holdAdmit = true;
  auto m = stepMessage(TSL_STEP_BEGIN);
  m.u.step.deadline_ms = 50;
  CHECK_THAT(w.begin(m).detail, Contains("answered in time"));
  w.master.stopListening();
  w.master.dropConnections();
  w.l.pumpUntil([&] { return !w.node->link().isUp(); });
  auto reply = w.begin(m);
  CHECK(reply.status == TSL_MASTER_DOWN);
  CHECK_THAT(reply.detail, Contains("127.0.0.1"));
  w.master.holdAdmit = false;
  auto request = w.daemon->send(stepMessage(TSL_STEP_BEGIN));
  w.master.listenAgain();
  CHECK(w.daemon->answerTo(request).status == TSL_OK);
}

TEST_CASE("who uses a device of its claim and is no job of Slurm's keeps no step out", "[node]") {
  World w;
  auto stranger = w.node.program();
  w.node.cards.use(stranger->pid(), 0, 1 << 20);
  // Such memory is waited for, when the turn has come.
  CHECK(w.begin(stepMessage(TSL_STEP_BEGIN, 0, "rl", "fake")).status == TSL_OK);
}

TEST_CASE("the program of a task takes over the slice that was acquired for it", "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(5);
  task->disconnect();  // by the exec
  task->connect();
  REQUIRE(task->hello().status == TSL_OK);
  auto reply = task->join("rl", "17.0");
  CHECK(reply.status == TSL_OK);
  CHECK(reply.epoch_counter == 5);
  CHECK(reply.flags == TSL_REPLY_FROM_GATE);
  CHECK(w.node.logged({"take-over", "17.0"}) != "");
  auto again = task->acquire();  // has it already
  CHECK(again.status == TSL_OK);
  CHECK(again.epoch_counter == 5);
  CHECK(task->yield(5).status == TSL_OK);
  w.l.pumpUntil([&] { return w.master.heard("yield " + w.participant() + " epoch=5"); });
  task->kill();  // it has joined by itself: this is no end without a word any more
  w.l.pumpUntil([&] { return w.master.heard("left " + w.participant() + " died"); });
}

TEST_CASE("a task that never joins gives its turn back with its end", "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(5);
  task->kill();
  w.l.pumpUntil([&] { return w.master.heard("left " + w.participant()); });
  CHECK(w.master.heard("yield " + w.participant() + " epoch=5"));
}

TEST_CASE("a gate outlives the node daemon", "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(5);
  w.node.restart();
  REQUIRE(w.node->registry().steps().size() == 1);
  task->connect();
  REQUIRE(task->hello().status == TSL_OK);
  CHECK(task->join("rl", "17.0").flags == TSL_REPLY_FROM_GATE);
}

TEST_CASE("what turns a step had is told, of a script all that its job had", "[node]") {
  World w;
  REQUIRE(w.begin(stepMessage(TSL_STEP_BEGIN, kBatch)).status == TSL_OK);
  CHECK(w.account(kBatch).empty());
  auto stepd = w.node.program();
  REQUIRE(stepd->call(stepMessage(TSL_STEP_BEGIN)).status == TSL_OK);
  auto task = w.passedGate(5);
  CHECK(w.master.endSlice("17.0", 5).wait(w.l.scope).ok());
  CHECK_THAT(w.account(0), Contains("1 turn, waited 0.0 s, held 0.0 s, moved 0 MiB"));
  CHECK(stepd->call(stepMessage(TSL_STEP_END)).status == TSL_OK);
  CHECK_THAT(w.account(kBatch), Contains("1 turn,"));
  CHECK(w.daemon->call(stepMessage(TSL_STEP_END, kBatch)).status == TSL_OK);
  CHECK(w.account(kBatch).empty());
}

TEST_CASE(
    "FF-G9: what the end of a step leaves is killed, and so is what a slurmstepd leaves that died",
    "[node]") {
  World w;
  REQUIRE(w.begin().status == TSL_OK);
  auto task = w.passedGate(5);
  SECTION("its slurmstepd says so") {
    CHECK(w.daemon->call(stepMessage(TSL_STEP_END)).status == TSL_OK);
  }
  SECTION("the epilog says so") {
    auto epilog = w.node.program();
    CHECK(epilog->call(stepMessage(TSL_STEP_END, TSL_ALL_STEPS)).status == TSL_OK);
    CHECK(epilog->call(stepMessage(TSL_STEP_END, TSL_ALL_STEPS)).status == TSL_OK);  // again
  }
  SECTION("its slurmstepd is killed") {
    w.daemon->kill();
  }
  SECTION("its slurmstepd is killed while the node daemon is away") {
    w.node.stop();
    w.daemon->kill();
    w.node.start();
  }
  w.l.pumpUntil([&] { return w.master.heard("left " + w.participant()); });
  CHECK(w.node->registry().steps().empty());
  CHECK(w.node.logged({"step-survivors", "killed=1"}) != "");
  CHECK(::kill(task->pid(), 0) == 0);  // a zombie: it is ours to bury
}

TEST_CASE("a task that waits is told why, with numbers", "[node]") {
  World w;
  auto reply = w.daemon->call(stepMessage(TSL_OUTLOOK));
  CHECK(reply.status == TSL_OK);
  CHECK(reply.waiters == 2);
  CHECK(reply.bytes == 3);
  CHECK(std::string(reply.detail) == "before it is job rl/other");
}

TEST_CASE("a process of a step with device state is a member, whether it has joined or not",
          "[node]") {
  World w;
  REQUIRE(w.begin(stepMessage(TSL_STEP_BEGIN, 0, "rl", "fake")).status == TSL_OK);
  auto joined = w.node.program();
  REQUIRE(joined->join("rl", "17.0", "0", "fake").status == TSL_OK);
  w.node.cards.use(w.daemon->pid(), 1,
                   1 << 20);  // neither child nor neighbour of the one that joined
  REQUIRE(joined->leave().status == TSL_OK);
  w.l.pumpUntil([&] { return w.master.heard("member-seen 17.0"); });
  CHECK(w.node.logged({"member-seen", "pid=" + std::to_string(w.daemon->pid())}) != "");
}
