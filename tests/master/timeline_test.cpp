// Where the time of a switch went, from orders and their ends at known times.
#include "master/timeline.h"

#include <catch2/catch.hpp>

using namespace ts;

namespace {

const NodeId n0{0}, n1{1};
const JobId out{1}, in{2};
const Epoch epoch{1, 7};

Instant at(int ms) {
  return Instant{} + std::chrono::milliseconds(ms);
}

std::int64_t ms(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

Notice told(Notice::Kind kind) {
  Notice notice{};
  notice.kind = kind;
  notice.job = in;
  return notice;
}

Grant granted(NodeId node) {
  return {.operation = {},
          .node = node,
          .job = in,
          .epoch = epoch,
          .waited = std::chrono::milliseconds(60)};
}

// Job `out` leaves two nodes, asked for at 40, begun at 50: booked at 55, still at 65, saved at 95,
// back at 100.
struct Switched {
  Timeline line;
  Save first{.operation = {}, .node = n0, .job = out, .member = MemberId{11}};
  Save second{.operation = {}, .node = n1, .job = out, .member = MemberId{12}};

  Switched() {
    line.ordered(Prepare{{}, n0, in, {MemberId{11}}, {}}, at(50));
    line.ordered(Prepare{{}, n1, in, {MemberId{12}}, {}}, at(50));
    line.ordered(told(Notice::Kind::SwitchStarted), at(55));
    line.ordered(first, at(65));
    line.ordered(second, at(65));
    CHECK_FALSE(line.ended(first, at(80)));
    CHECK_FALSE(line.ended(second, at(95)));
  }
  void grant() {
    line.ordered(granted(n0), at(100));
    line.ordered(granted(n1), at(100));
    line.ordered(told(Notice::Kind::SwitchFinished), at(100));
  }
};

}  // namespace

TEST_CASE("FF-I8: the spans of a switch follow each other and sum to the whole", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n1), at(104)));
  auto spans = s.line.ended(granted(n0), at(107));
  REQUIRE(spans);
  CHECK(spans->job == in);
  CHECK(ms(spans->queue) == 10);
  CHECK(ms(spans->prepare) == 5);
  CHECK(ms(spans->lock) == 10);
  CHECK(ms(spans->save) == 30);
  CHECK(ms(spans->restore) == 5);
  CHECK(ms(spans->unlock) == 7);
  CHECK(ms(spans->total()) == 67);
}

TEST_CASE("a switch that was rolled back counts as waiting for the next", "[master]") {
  Switched s;
  s.line.ordered(told(Notice::Kind::SwitchRolledBack), at(96));
  s.line.ordered(Prepare{{}, n0, in, {MemberId{11}}, {}}, at(98));
  s.line.ordered(told(Notice::Kind::SwitchStarted), at(99));
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), at(101)));
  auto spans = s.line.ended(granted(n1), at(102));
  REQUIRE(spans);
  CHECK(ms(spans->queue) == 58);
  CHECK(ms(spans->save) == 0);
  CHECK(ms(spans->total()) == 62);
}

TEST_CASE("a grant without a switch, and who enters later, are not timed", "[master]") {
  Timeline line;
  line.ordered(granted(n0), at(1));
  CHECK_FALSE(line.ended(granted(n0), at(2)));
}
