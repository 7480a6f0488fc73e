#include <catch2/catch.hpp>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

std::string saveAndRestore(Actor& caller, const std::string& pid) {
  caller.value("lock " + pid + " 0");
  caller.value("checkpoint " + pid);
  return caller.ask("restore " + pid);
}

}  // namespace

TEST_CASE("a process that has offered memory to others comes back from driver 610 on", "[simgpu]") {
  auto driver = GENERATE(std::string("580.95.05"), std::string("610.10"));
  bool able = driver == "610.10";
  Stage stage;
  stage.set("driver", driver);
  stage.set("ipc", "on");
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("offer " + job->value("alloc 65536"));
  CHECK(saveAndRestore(*caller, job->self()) == (able ? "ok" : "error 801"));
  if (!able) CHECK(caller->ask("restore " + job->self()) == "error 304");  // for good
}

TEST_CASE("a feature that is off is refused, and one that is unsupported costs the restore",
          "[simgpu]") {
  struct Use {
    const char* key;
    const char* command;
  };
  auto use = GENERATE(Use{"uvm", "managed 65536"}, Use{"nvls", "multicast"});
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set(use.key, "off");
  CHECK(job->ask(use.command) == "error 801");
  stage.set(use.key, "unsupported");
  CHECK(job->ask(use.command).starts_with("ok"));
  CHECK(saveAndRestore(*caller, job->self()) == "error 801");
}

TEST_CASE("a feature that is on is saved and restored", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("nvls", "on");
  job->value("managed 65536");
  job->value("multicast");
  CHECK(saveAndRestore(*caller, job->self()) == "ok");
}

TEST_CASE("an MPS client is listed as one and cannot be locked", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto other = stage.started();
  auto caller = stage.actor();
  stage.set("mps@" + job->self(), "on");
  CHECK(caller->value("nvml-mps 0") == job->self() + ":0");
  CHECK(caller->ask("lock " + job->self() + " 10") == "error 801");
  CHECK(caller->ask("lock " + other->self() + " 10") == "ok");
}

TEST_CASE("on a card in MIG mode a checkpoint is out of memory", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("mig", "yes");
  caller->value("lock " + job->self() + " 0");
  CHECK(caller->ask("checkpoint " + job->self()) == "error 2");
  CHECK(caller->ask("state " + job->self()) == "ok 1");
}
