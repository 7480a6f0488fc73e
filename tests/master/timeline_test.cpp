// Where the time of a switch went, from orders and their ends at known times.
#include "master/timeline.h"

#include <catch2/catch.hpp>

using namespace ts;

namespace {

const NodeId n0{0}, n1{1};
const JobId out{1}, in{2}, other{3};
const Epoch epoch{1, 7}, later{1, 8};
const Outcome done{};
const Outcome refused{.code = Outcome::Code::Refused, .cause = Cause::NoHostMemory};
const Outcome failed{.code = Outcome::Code::Failed, .cause = Cause::DriverError};

Instant at(int ms) {
  return Instant{} + std::chrono::milliseconds(ms);
}

std::int64_t ms(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

Notice told(Notice::Kind kind, JobId job = in) {
  Notice notice{};
  notice.kind = kind;
  notice.job = job;
  return notice;
}

Prepare asked(NodeId node, MemberId outgoing, unsigned operation = 1) {
  return {OperationId{operation}, node, in, {outgoing}, {}};
}

Grant granted(NodeId node, Epoch at = epoch, int waited = 60) {
  return {.operation = {},
          .node = node,
          .job = in,
          .epoch = at,
          .waited = std::chrono::milliseconds(waited)};
}

EndSlice over(NodeId node) {
  return {.operation = {}, .node = node, .job = in, .epoch = epoch};
}

// Job `out` leaves two nodes, asked for at 40, begun at 50: booked at 55, still at 65, saved at 95,
// back at 100.
struct Switched {
  Timeline line;
  Save first{.operation = {}, .node = n0, .job = out, .member = MemberId{11}};
  Save second{.operation = {}, .node = n1, .job = out, .member = MemberId{12}};

  Switched() {
    line.ordered(asked(n0, MemberId{11}), at(50));
    line.ordered(asked(n1, MemberId{12}), at(50));
    line.ordered(told(Notice::Kind::SwitchStarted), at(55));
    line.ordered(first, at(65));
    line.ordered(second, at(65));
    CHECK_FALSE(line.ended(first, done, at(80)));
    CHECK_FALSE(line.ended(second, done, at(95)));
  }
  // Once more, by what it moves out on one node: begun at 510, booked at 520, saved at 540.
  void again() {
    line.ordered(asked(n0, MemberId{11}), at(510));
    line.ordered(told(Notice::Kind::SwitchStarted), at(520));
    line.ordered(first, at(530));
    CHECK_FALSE(line.ended(first, done, at(540)));
    line.ordered(granted(n0, later, 50), at(550));
    line.ordered(told(Notice::Kind::SwitchFinished), at(550));
  }
  void checkAgain() {
    again();
    auto spans = line.ended(granted(n0, later), done, at(560));
    REQUIRE(spans);
    CHECK(ms(spans->queue) == 10);
    CHECK(ms(spans->prepare) == 10);
    CHECK(ms(spans->lock) == 10);
    CHECK(ms(spans->save) == 10);
    CHECK(ms(spans->restore) == 10);
    CHECK(ms(spans->unlock) == 10);
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
  CHECK_FALSE(s.line.ended(granted(n1), done, at(104)));
  auto spans = s.line.ended(granted(n0), done, at(107));
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
  s.line.ordered(asked(n0, MemberId{11}), at(98));
  s.line.ordered(told(Notice::Kind::SwitchStarted), at(99));
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), done, at(101)));
  auto spans = s.line.ended(granted(n1), done, at(102));
  REQUIRE(spans);
  CHECK(ms(spans->queue) == 58);
  CHECK(ms(spans->save) == 0);
  CHECK(ms(spans->total()) == 62);
}

TEST_CASE("a grant without a switch, and who enters later, are not timed", "[master]") {
  Timeline line;
  line.ordered(granted(n0), at(1));
  CHECK_FALSE(line.ended(granted(n0), done, at(2)));
}

TEST_CASE("a lock that takes no time ends with the first save and not with the last", "[master]") {
  Timeline line;
  Save first{.operation = {}, .node = n0, .job = out, .member = MemberId{11}};
  Save second{.operation = {}, .node = n0, .job = out, .member = MemberId{12}};
  line.ordered(Prepare{{}, n0, in, {MemberId{11}, MemberId{12}}, {}}, at(50));
  line.ordered(told(Notice::Kind::SwitchStarted), at(55));
  line.ordered(first, at(55));
  line.ordered(second, at(75));
  CHECK_FALSE(line.ended(first, done, at(80)));
  CHECK_FALSE(line.ended(second, done, at(95)));
  line.ordered(granted(n0), at(100));
  auto spans = line.ended(granted(n0), done, at(107));
  REQUIRE(spans);
  CHECK(ms(spans->lock) == 0);
  CHECK(ms(spans->save) == 40);
}

TEST_CASE("who is refused before the switch begins has waited, and prepared nothing", "[master]") {
  Switched s;
  s.line.ordered(told(Notice::Kind::SwitchRolledBack), at(96));
  s.line.ordered(asked(n0, MemberId{11}, 2), at(200));
  s.line.ordered(asked(n1, MemberId{12}, 3), at(200));
  SECTION("by a node") {
    CHECK_FALSE(s.line.ended(asked(n0, MemberId{11}, 2), refused, at(210)));
    s.line.ordered(DropBooking{{}, n1, in}, at(210));
  }
  SECTION("by its own caller, who gave up") {
    s.line.ordered(DropBooking{{}, n0, in}, at(210));
    s.line.ordered(DropBooking{{}, n1, in}, at(210));
  }
  SECTION("because one node gave up its booking and the other is dead") {
    s.line.ordered(DropBooking{{}, n0, in}, at(210));
    s.line.happened(NodeDied{n1});
  }
  SECTION("because its job has ended") {
    s.line.happened(JobEnded{in});
  }
  SECTION("and comes in later without a switch") {
    s.line.ordered(granted(n0), at(400));
    CHECK_FALSE(s.line.ended(granted(n0), done, at(401)));
  }
  s.checkAgain();
}

TEST_CASE("a booking that is asked for anew is not lost to the refusal of the old one",
          "[master]") {
  Timeline line;
  line.ordered(asked(n0, MemberId{11}, 1), at(40));
  line.ordered(asked(n1, MemberId{12}, 2), at(40));
  line.ordered(DropBooking{{}, n0, in}, at(45));
  line.ordered(asked(n0, MemberId{11}, 3), at(45));
  CHECK_FALSE(line.ended(asked(n0, MemberId{11}, 1), refused, at(46)));
  line.ordered(DropBooking{{}, n1, in}, at(47));
  line.ordered(told(Notice::Kind::SwitchStarted), at(55));
  line.ordered(granted(n0), at(100));
  auto spans = line.ended(granted(n0), done, at(107));
  REQUIRE(spans);
  CHECK(ms(spans->prepare) == 15);
}

TEST_CASE("what dies under its grant is forgotten and takes no other switch's time", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), done, at(104)));
  SECTION("its node") {
    s.line.happened(NodeDied{n1});
  }
  SECTION("the job") {
    s.line.happened(JobEnded{in});
  }
  CHECK_FALSE(s.line.ended(granted(n1), done, at(107)));
  s.checkAgain();
}

TEST_CASE("a switch whose job asks again before its grant was answered starts anew", "[master]") {
  Switched s;
  s.grant();
  s.checkAgain();
}

TEST_CASE("a node that dies when it has answered delays nobody's timing", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), done, at(104)));
  s.line.happened(NodeDied{n0});
  CHECK(s.line.ended(granted(n1), done, at(107)));
}

TEST_CASE("two switches that wait for the same save are both told of it", "[master]") {
  Switched s;
  Timeline& line = s.line;
  line.ordered(Prepare{{}, n0, other, {MemberId{13}}, {}}, at(96));
  line.ordered(told(Notice::Kind::SwitchStarted, other), at(96));
  line.ordered(asked(n0, MemberId{13}), at(96));  // the first needs it gone too
  Save third{.operation = {}, .node = n0, .job = out, .member = MemberId{13}};
  line.ordered(third, at(97));
  CHECK_FALSE(line.ended(third, done, at(99)));
  s.grant();
  CHECK_FALSE(line.ended(granted(n0), done, at(104)));
  auto spans = line.ended(granted(n1), done, at(107));
  REQUIRE(spans);
  CHECK(ms(spans->save) == 34);
  Grant grant{.operation = {}, .node = n0, .job = other, .epoch = later};
  line.ordered(grant, at(110));
  spans = line.ended(grant, done, at(111));
  REQUIRE(spans);
  CHECK(ms(spans->lock) == 1);
  CHECK(ms(spans->save) == 2);
}

TEST_CASE("what another switch was saving already counts from the begin of this one", "[master]") {
  Timeline line;
  Save early{.operation = {}, .node = n0, .job = out, .member = MemberId{11}};
  line.ordered(asked(n0, MemberId{11}), at(50));
  line.ordered(early, at(52));
  line.ordered(told(Notice::Kind::SwitchStarted), at(55));
  CHECK_FALSE(line.ended(early, done, at(95)));
  line.ordered(granted(n0), at(100));
  auto spans = line.ended(granted(n0), done, at(107));
  REQUIRE(spans);
  CHECK(ms(spans->lock) == 0);
  CHECK(ms(spans->save) == 40);
}

TEST_CASE("a grant that fails completes nothing; the one that makes up for it does", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), failed, at(103)));
  CHECK_FALSE(s.line.ended(granted(n1), done, at(104)));
  s.line.ordered(granted(n0, epoch, 0), at(200));
  auto spans = s.line.ended(granted(n0), done, at(207));
  REQUIRE(spans);
  CHECK(ms(spans->queue) == 10);
  CHECK(ms(spans->unlock) == 107);
}

TEST_CASE("a grant that nothing makes up for is not timed", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n1), done, at(104)));
  CHECK_FALSE(s.line.ended(granted(n0), failed, at(105)));
  SECTION("its job is at fault") {
    s.line.ordered(told(Notice::Kind::JobFaulted), at(106));
  }
  SECTION("its slice is over") {
    CHECK_FALSE(s.line.ended(over(n0), done, at(106)));
  }
  s.line.ordered(granted(n0), at(300));  // an operator tries once more
  CHECK_FALSE(s.line.ended(granted(n0), done, at(301)));
}

TEST_CASE("who yields before the last node has answered is timed all the same", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), done, at(103)));
  CHECK_FALSE(s.line.ended(over(n0), done, at(105)));
  CHECK(s.line.ended(granted(n1), done, at(107)));
}

TEST_CASE("who enters a slice that is being granted does not make its switch longer", "[master]") {
  Switched s;
  s.grant();
  CHECK_FALSE(s.line.ended(granted(n0), done, at(103)));
  s.line.ordered(granted(n0), at(104));
  CHECK(s.line.ended(granted(n1), done, at(107)));
}
