#include "peers.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "ranks.h"

using namespace demo;

namespace {

std::vector<float> valuesOf(unsigned rank) {
  std::vector<float> values;
  for (unsigned k = 0; k < 4000; ++k) {
    values.push_back(1e-3f * static_cast<float>((k * 37 + rank * 101) % 1009) - 0.4f);
  }
  return values;
}

std::vector<std::vector<float>> sums(unsigned world) {
  std::vector<std::vector<float>> all(world);
  asRanks(world, [&](Peers& peers) {
    all[peers.rank()] = valuesOf(peers.rank());
    peers.sum(all[peers.rank()]);
  });
  return all;
}

}  // namespace

TEST_CASE("every rank gets the same bits of a sum, every time", "[demo]") {
  const auto once = sums(4);
  const auto again = sums(4);
  for (unsigned rank = 0; rank < 4; ++rank) {
    CHECK(std::memcmp(once[rank].data(), once[0].data(), once[0].size() * sizeof(float)) == 0);
    CHECK(std::memcmp(again[rank].data(), once[0].data(), once[0].size() * sizeof(float)) == 0);
  }
}

TEST_CASE("a sum adds the ranks in their order", "[demo]") {
  const auto both = sums(3);
  float expected = valuesOf(0)[17];
  expected += valuesOf(1)[17];
  expected += valuesOf(2)[17];
  CHECK(both[1][17] == expected);
}

TEST_CASE("a gathered number arrives from each rank in their order", "[demo]") {
  std::vector<std::vector<std::uint64_t>> seen(3);
  asRanks(3, [&](Peers& peers) { seen[peers.rank()] = peers.gather(100 + peers.rank()); });
  for (const auto& numbers : seen) CHECK(numbers == std::vector<std::uint64_t>{100, 101, 102});
}

TEST_CASE("a rank whose peer is gone says so", "[demo]") {
  std::string said;
  asRanks(2, [&](Peers& peers) {
    if (peers.rank() == 1) return;
    try {
      peers.gather(1);
    } catch (const PeerError& error) {
      said = error.what();
    }
  });
  CHECK_THAT(said, Catch::Contains("a rank is gone"));
}

TEST_CASE("a rank outside its world is refused", "[demo]") {
  CHECK_THROWS_WITH(Peers({2, 2, "127.0.0.1:1"}), Catch::Contains("rank 2 of a world of 2"));
}

TEST_CASE("ranks that do not come are named", "[demo]") {
  const Listener listener;
  CHECK_THROWS_WITH(Peers({0, 3, listener.address(), listener.fd, std::chrono::milliseconds(1)}),
                    Catch::Contains("rank 1, 2 of 3 did not come within 1 s"));
}

TEST_CASE("a rank that comes and does not say which it is has not come", "[demo]") {
  const Listener listener;
  const int silent = connectTo(listener.address());
  CHECK_THROWS_WITH(Peers({0, 2, listener.address(), listener.fd, std::chrono::milliseconds(1)}),
                    Catch::Contains("rank 1 of 2 did not come"));
  ::close(silent);
}
