#include <catch2/catch.hpp>

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

TEST_CASE("a control file with a mistake is refused with the line and what is allowed", "[simgpu]") {
  auto parsed = simgpu::parseSettings("bytes = 1 GiB\nh2d = quick\n");
  REQUIRE(std::holds_alternative<std::string>(parsed));
  CHECK(std::get<std::string>(parsed).starts_with("line 2: key 'h2d' does not take 'quick'"));
  parsed = simgpu::parseSettings("bites = 1 GiB\n");
  CHECK(std::get<std::string>(parsed).starts_with("line 1: unknown key 'bites'"));
}
