#include <catch2/catch.hpp>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

std::string bytes(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace

TEST_CASE("a checkpoint beyond the host memory of a process is out of memory and moves nothing",
          "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + bytes(8 * kMiB));
  stage.set("host_memory", "4 MiB");
  caller->value("lock " + job->self() + " 0");
  CHECK(caller->ask("checkpoint " + job->self()) == "error 2");
  CHECK(stage.card().usedBytes() == 8 * kMiB);
  stage.set("host_memory", "8 MiB");
  CHECK(caller->ask("checkpoint " + job->self()) == "ok");
}

TEST_CASE("the store is for all processes together, and free again after a restore", "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  auto caller = stage.actor();
  stage.set("store", "12 MiB");
  for (auto* job : {a.get(), b.get()}) {
    job->value("alloc " + bytes(8 * kMiB));
    caller->value("lock " + job->self() + " 0");
  }
  caller->value("checkpoint " + a->self());
  CHECK(caller->ask("checkpoint " + b->self()) == "error 2");
  caller->value("restore " + a->self());
  CHECK(caller->ask("checkpoint " + b->self()) == "ok");
}

TEST_CASE("what a process may pin is limited", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  stage.set("locked_memory", "1 MiB");
  CHECK(job->ask("pin " + bytes(kMiB)) == "ok");
  CHECK(job->ask("pin 4096") == "error 2");
}

TEST_CASE("a process has as many allocations as its machine has mappings", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  stage.set("mappings@" + job->self(), "2 B");
  std::string first = job->value("alloc 65536");
  job->value("alloc 65536");
  CHECK(job->ask("alloc 65536") == "error 2");
  job->value("free " + first);
  CHECK(job->ask("alloc 65536").starts_with("ok"));
}
