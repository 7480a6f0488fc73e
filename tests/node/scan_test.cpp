#include "node/scan.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace ts;
using namespace ts::node;

namespace {

// One device whose only user is this process.
class OneUser final : public Inventory {
public:
  explicit OneUser(std::optional<std::uint64_t> bytes) : bytes_(bytes) {}
  std::vector<GpuInfo> gpus() override { return {{.index = 0}}; }
  std::optional<GpuMemory> memory(std::uint32_t) override { return GpuMemory{8, 8, 0}; }
  std::optional<std::vector<GpuProcess>> processes(std::uint32_t gpu) override {
    if (gpu > 0) return {};
    return {{{::getpid(), bytes_}}};
  }
  std::string detail() const override { return "one user"; }

private:
  std::optional<std::uint64_t> bytes_;
};

Identity self() {
  return readProcess(::getpid())->identity;
}

}  // namespace

TEST_CASE("what a process has is known when each of its devices was measured", "[node]") {
  OneUser inventory(5);
  auto seen = scan(inventory, {0, 1});
  CHECK(seen.bytesOf(self(), {0}) == DeviceBytes{{0, 5}});
  CHECK_FALSE(seen.bytesOf(self(), {0, 1}));
}

TEST_CASE("a process whose memory the driver does not tell is not measured", "[node]") {
  OneUser inventory({});
  auto seen = scan(inventory, {0});
  CHECK_FALSE(seen.bytesOf(self(), {0}));
  CHECK(seen.bytesOf({self().pid, 1}, {0}) ==
        DeviceBytes{});  // another, which had the number before
}

TEST_CASE("memory under a number that has been given to another is not the dead one's", "[node]") {
  OneUser inventory(5);
  auto seen = scan(inventory, {0});
  CHECK(seen.bytesOf({self().pid, 1}, {0}) == DeviceBytes{});
}

TEST_CASE("memory of one that had ended when we looked is its own", "[node]") {
  Scan seen{.users = {{.process = {.identity = {17, 0}}, .bytes = {{0, 5}}, .unmeasured = {}}},
            .measured = {0}};
  CHECK(seen.bytesOf({17, 99}, {0}) == DeviceBytes{{0, 5}});
}
