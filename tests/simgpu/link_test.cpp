#include <catch2/catch.hpp>

#include "simgpu/process_id.h"
#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

double secondsSince(std::uint64_t startNs) {
  return static_cast<double>(simgpu::nowNs() - startNs) * 1e-9;
}

}  // namespace

TEST_CASE("two processes share the bandwidth of a card's link", "[simgpu]") {
  Stage stage({"bytes = 64 MiB\nh2d = 100 MB/s"});
  auto a = stage.started();
  auto b = stage.started();
  std::string mine = a->value("alloc 8000000");
  std::string yours = b->value("alloc 8000000");
  std::uint64_t start = simgpu::nowNs();
  a->say("pattern " + mine + " 8000000 1");
  b->say("pattern " + yours + " 8000000 2");
  CHECK(a->hear() == "ok");
  CHECK(b->hear() == "ok");
  CHECK(secondsSince(start) >= 0.16);
}

TEST_CASE("saves and restores take the modelled time of link and call", "[simgpu]") {
  Stage stage({"bytes = 64 MiB\nd2h = 100 MB/s\nh2d = 200 MB/s\nsave = 50 ms\nrestore = 20 ms"});
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc 10000000");
  caller->value("lock " + job->self() + " 0");
  std::uint64_t start = simgpu::nowNs();
  caller->value("checkpoint " + job->self());
  CHECK(secondsSince(start) >= 0.15);
  start = simgpu::nowNs();
  caller->value("restore " + job->self());
  CHECK(secondsSince(start) >= 0.07);
}
