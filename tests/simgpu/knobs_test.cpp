#include <catch2/catch.hpp>

#include <thread>

#include "simgpu/stage.h"

using namespace simgpu_test;

TEST_CASE("the n-th call since the knob was set fails with the code it says", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  stage.set("fail.cuMemAlloc", "2 on 3");
  CHECK(job->ask("alloc 65536").starts_with("ok "));
  CHECK(job->ask("alloc 65536").starts_with("ok "));
  CHECK(job->ask("alloc 65536") == "error 2");
  CHECK(job->ask("alloc 65536").starts_with("ok "));
}

TEST_CASE("a knob may mean one process only", "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  stage.set("fail.cuMemAlloc@" + a->self(), "999");
  CHECK(a->ask("alloc 65536") == "error 999");
  CHECK(b->ask("alloc 65536").starts_with("ok "));
}

TEST_CASE("after a sticky restore failure nothing brings the process back", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("sticky_restore_oom", "yes");
  job->value("alloc " + std::to_string(40 * kMiB));
  caller->value("lock " + job->self() + " 0");
  caller->value("checkpoint " + job->self());
  auto other = stage.started();
  other->value("alloc " + std::to_string(40 * kMiB));
  CHECK(caller->ask("restore " + job->self()) == "error 2");
  other->kill();
  CHECK(caller->ask("restore " + job->self()) == "error 304");
  CHECK(caller->ask("unlock " + job->self()) == "error 401");
}

TEST_CASE("a lock that never gets its process quiet ends by its time-out", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("lock_times_out", "yes");
  CHECK(caller->ask("lock " + job->self() + " 20") == "error 600");
  CHECK(caller->ask("state " + job->self()) == "ok 0");
  stage.set("lock_times_out", "no");
  CHECK(caller->ask("lock " + job->self() + " 1000") == "ok");
}

TEST_CASE("a call hangs as long as its knob says so", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  stage.set("hang.cuMemAlloc", "yes");
  job->say("alloc 65536");
  auto other = stage.actor();
  CHECK(other->value("nvml-memory 0").find(" 0 ") != std::string::npos);
  stage.set("hang.cuMemAlloc", "");
  CHECK(job->hear().starts_with("ok "));
}

TEST_CASE("a control file with a mistake is refused with the line and what is allowed",
          "[simgpu]") {
  auto parsed = simgpu::parseSettings("bytes = 1 GiB\nh2d = quick\n");
  REQUIRE(std::holds_alternative<std::string>(parsed));
  CHECK(std::get<std::string>(parsed).starts_with("line 2: key 'h2d' does not take 'quick'"));
  parsed = simgpu::parseSettings("bites = 1 GiB\n");
  CHECK(std::get<std::string>(parsed).starts_with("line 1: unknown key 'bites'"));
}

TEST_CASE("a lost answer leaves the change behind", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("fail.checkpoint", "304 after");
  caller->value("lock " + job->self() + " 0");
  CHECK(caller->ask("checkpoint " + job->self()) == "error 304");
  CHECK(caller->ask("state " + job->self()) == "ok 2");
}

TEST_CASE("memory released late is held, and seen as held, until then", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + std::to_string(40 * kMiB));
  stage.set("release_delay", "100 ms");
  caller->value("lock " + job->self() + " 0");
  CHECK(caller->ask("checkpoint " + job->self()) == "ok");
  CHECK(caller->value("nvml-processes 0") == job->self() + ":" + std::to_string(40 * kMiB));
  while (!caller->value("nvml-processes 0").empty()) std::this_thread::yield();
  CHECK(stage.card().usedBytes() == 0);
  CHECK(caller->ask("restore " + job->self()) == "ok");
  CHECK(caller->ask("unlock " + job->self()) == "ok");
  CHECK(stage.card().usedBytes() == 40 * kMiB);
}

TEST_CASE("a lock that crashes its target reports a failed call", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("crash.lock", "before");
  CHECK(caller->ask("lock " + job->self() + " 1000") == "error 304");
  CHECK(job->hear() == "gone");
}

TEST_CASE("peers are checkpointed when all are locked, and unlocked when all are restored",
          "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  auto caller = stage.actor();
  auto second = stage.actor();
  stage.set("peers", a->self() + " " + b->self());
  caller->value("lock " + a->self() + " 0");
  caller->say("checkpoint " + a->self());  // waits for the lock of b
  CHECK(second->ask("state " + a->self()) == "ok 1");
  second->value("lock " + b->self() + " 0");
  CHECK(caller->hear() == "ok");
  CHECK(caller->ask("checkpoint " + b->self()) == "ok");
  CHECK(caller->ask("restore " + a->self()) == "ok");
  caller->say("unlock " + a->self());  // waits for the restore of b
  CHECK(second->ask("state " + a->self()) == "ok 1");
  second->value("restore " + b->self());
  CHECK(caller->hear() == "ok");
}

TEST_CASE("a teardown that a driver cannot take is in the trace", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("unsafe_teardown", "yes");
  for (auto step : {"lock ", "checkpoint ", "restore ", "unlock "})
    caller->value(step + job->self());
  std::string pid = job->self();
  job->kill();
  caller->value("nvml-memory 0");
  CHECK(stage.trace().find("host-hung pid=" + pid) != std::string::npos);
}
