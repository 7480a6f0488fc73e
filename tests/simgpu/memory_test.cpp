#include <catch2/catch.hpp>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

std::string bytes(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace

TEST_CASE("two processes share the capacity of a card", "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  std::string at = a->value("alloc " + bytes(40 * kMiB));
  CHECK(b->ask("alloc " + bytes(40 * kMiB)) == "error 2");
  CHECK(b->ask("alloc " + bytes(24 * kMiB)).starts_with("ok "));
  CHECK(b->ask("alloc 1") == "error 2");
  a->value("free " + at);
  CHECK(b->ask("alloc " + bytes(40 * kMiB)).starts_with("ok "));
  CHECK(a->value("memory") == "0 " + bytes(64 * kMiB));
}

TEST_CASE("an allocation in scattered free memory is whole", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  std::string blocks[8];
  for (auto& block : blocks) block = job->value("alloc " + bytes(8 * kMiB));
  for (int i = 0; i < 8; i += 2) job->value("free " + blocks[i]);
  std::string at = job->value("alloc " + bytes(32 * kMiB));
  job->value("pattern " + at + " " + bytes(32 * kMiB) + " 3");
  CHECK(job->value("check " + at + " " + bytes(32 * kMiB) + " 3") == "same");
  auto caller = stage.actor();
  for (auto step : {"lock ", "checkpoint ", "restore ", "unlock "})
    caller->value(step + job->self());
  CHECK(job->value("check " + at + " " + bytes(32 * kMiB) + " 3") == "same");
}

TEST_CASE("NVML sees what the processes hold", "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  auto watcher = stage.actor();
  a->value("alloc " + bytes(16 * kMiB));
  CHECK(watcher->value("nvml-memory 0") ==
        bytes(64 * kMiB) + " " + bytes(16 * kMiB) + " " + bytes(48 * kMiB));
  CHECK(watcher->value("nvml-processes 0") ==
        a->self() + ":" + bytes(16 * kMiB) + " " + b->self() + ":0");
  watcher->value("lock " + a->self() + " 0");
  watcher->value("checkpoint " + a->self());
  CHECK(watcher->value("nvml-processes 0") == b->self() + ":0");
}

TEST_CASE("CUDA_VISIBLE_DEVICES chooses among the cards by number and by uuid", "[simgpu]") {
  Stage stage({"bytes = 1 MiB", "bytes = 2 MiB", "bytes = 3 MiB"});
  CHECK(stage.actor()->value("count") == "3");
  CHECK(stage.actor({"CUDA_VISIBLE_DEVICES=2,0"})->value("count") == "2");
  CHECK(stage.actor({"CUDA_VISIBLE_DEVICES="})->ask("count") == "error 100");
  CHECK(stage.actor({"CUDA_VISIBLE_DEVICES=1,9,2"})->value("count") == "1");
  auto second = stage.started({"CUDA_VISIBLE_DEVICES=2,0"});
  CHECK(second->value("bus 0") == "0000:03:00.0");
  CHECK(second->value("memory") == bytes(3 * kMiB) + " " + bytes(3 * kMiB));
  auto named = stage.started({"CUDA_VISIBLE_DEVICES=" + stage.card(1).settings()->uuid});
  CHECK(named->value("memory") == bytes(2 * kMiB) + " " + bytes(2 * kMiB));
}

TEST_CASE("a child of fork has no driver until it executes a program", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  CHECK(job->value("in-child") == "3");
  CHECK(job->ask("alloc 65536").starts_with("ok "));
}

TEST_CASE("without cards there is no device, and a program is told", "[simgpu]") {
  Stage stage;
  CHECK(stage.actor({"SIMGPU_CARDS=/nowhere"})->ask("count") == "error 100");
}

TEST_CASE("busy time is kernel time: modelled or used, and two processes' kernels take turns",
          "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  a->value("spin 30000");
  b->value("spin 30000");
  a->value("sync");
  b->value("sync");
  double busy = stage.card().busySeconds();
  CHECK(busy >= 0.060);
  a->value("pattern " + a->value("alloc " + bytes(8 * kMiB)) + " " + bytes(8 * kMiB) + " 1");
  CHECK(stage.card().busySeconds() == busy);  // copies are not kernels
}
