#include "node/room.h"

#include <catch2/catch.hpp>
#include <random>

using namespace ts;
using namespace ts::node;

namespace {

const JobName kA{"rl", "a"};
const JobName kB{"rl", "b"};
const JobName kC{"rl", "c"};
constexpr Bytes kGiB = 1ull << 30;

HostLimit available(Bytes room) {
  return {"MemAvailable", room, {}};
}

}  // namespace

TEST_CASE("FF-C2: a switch is booked against the least of all limits, and the refusal names it",
          "[node]") {
  Bookings bookings(10 * kGiB);
  Need need{.host = {{kA, 6 * kGiB}}};
  CHECK(bookings.book(kB, need, 0, {available(100 * kGiB)}, {}).ok);
  // What is kept already counts against the budget.
  auto no = bookings.book(kB, need, 6 * kGiB, {available(100 * kGiB)}, {});
  CHECK_FALSE(no.ok);
  CHECK(no.need == 6 * kGiB);
  CHECK(no.free == 4 * kGiB);
  CHECK(no.what == "host_budget");
  auto cgroup =
      bookings.book(kB, need, 0, {available(100 * kGiB), {"cgroup /job", 5 * kGiB, {kA}}}, {});
  CHECK(cgroup.what == "cgroup /job");
  // Another job's cgroup does not bound it.
  CHECK(bookings.book(kB, need, 0, {{"cgroup /other", 0, {kC}}}, {}).ok);
}

TEST_CASE("a refusal changes nothing, a repetition replaces", "[node]") {
  Bookings bookings(0);
  CHECK(bookings.book(kB, {.host = {{kA, 6}}}, 0, {available(10)}, {}).ok);
  CHECK(bookings.book(kB, {.host = {{kA, 8}}}, 0, {available(10)}, {}).ok);
  CHECK(bookings.hostBooked() == 8);
  CHECK_FALSE(bookings.book(kB, {.host = {{kA, 11}}}, 0, {available(10)}, {}).ok);
  CHECK(bookings.hostBooked() == 8);
  bookings.drop(kB);
  CHECK(bookings.hostBooked() == 0);
}

TEST_CASE("a device has the room that is free and that the outgoing leave", "[node]") {
  Bookings bookings(0);
  Need need{.frees = {{0, 10 * kGiB}}, .takes = {{0, 12 * kGiB}}};
  CHECK(bookings.book(kB, need, 0, {}, {{0, 2 * kGiB}}).ok);
  auto no = bookings.book(kB, need, 0, {}, {{0, 2 * kGiB - 1}});
  CHECK_FALSE(no.ok);
  CHECK(no.device == 0u);
  CHECK(no.need == 12 * kGiB);
  CHECK(no.free == 12 * kGiB - 1);
  auto unknown = bookings.book(kB, need, 0, {}, {});
  CHECK_FALSE(unknown.ok);
  CHECK(unknown.unmeasured);
  CHECK(unknown.device == 0u);
  // Who takes nothing needs no measuring.
  CHECK(bookings.book(kB, {.takes = {{0, 0}}}, 0, {}, {}).ok);
}

TEST_CASE("what is saved and restored need not be promised any more", "[node]") {
  Bookings bookings(0);
  Need need{.host = {{kA, 6}}, .frees = {{0, 6}}, .takes = {{0, 8}}};
  REQUIRE(bookings.book(kB, need, 0, {available(6)}, {{0, 2}}).ok);
  CHECK_FALSE(bookings.book(kC, {.host = {{kA, 1}}}, 0, {available(6)}, {}).ok);
  bookings.saved(kA, 6, {{0, 6}});
  CHECK(bookings.hostBooked() == 0);
  CHECK_FALSE(bookings.book(kC, {.takes = {{0, 1}}}, 0, {}, {{0, 8}}).ok);  // promised to b
  bookings.restored(kB, {{0, 8}});
  CHECK(bookings.book(kC, {.takes = {{0, 1}}}, 0, {}, {{0, 1}}).ok);
}

TEST_CASE("FF-C8: whatever is asked, the admitted never exceed the limit, to the byte", "[node]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    Bookings bookings(0);
    Bytes limit = random() % 3 == 0 ? UINT64_MAX - random() % 5 : random() % 100000;
    Bytes admitted = 0;
    for (int i = 0; i < 20; ++i) {
      Bytes wanted = random() % 4 == 0 ? random() : random() % 20000;
      JobName waiter{"rl", std::to_string(i)};
      bool ok = bookings.book(waiter, {.host = {{kA, wanted}}}, 0, {available(limit)}, {}).ok;
      bool fits = wanted <= limit - admitted;
      REQUIRE(ok == (fits || wanted == 0));
      if (ok) admitted += wanted;
      REQUIRE(admitted <= limit);
    }
  }
}
