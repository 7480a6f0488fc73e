#include "reactor/soon.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "support/loop.h"

using namespace ts;
using test::Loop;

TEST_CASE("with what is here work goes on before the call returns", "[reactor]") {
  int seen = 0;
  auto after = Soon<int>(3).then([&](int v) { return seen = v + 1; });
  CHECK(seen == 4);
  REQUIRE(after.isHere());
  CHECK(after.take() == 4);
}

TEST_CASE("with what is promised work goes on when it comes", "[reactor]") {
  Loop l;
  auto promised = kj::newPromiseAndFulfiller<int>();
  int seen = 0;
  auto after = Soon<int>(kj::mv(promised.promise)).then([&](int v) { return seen = v; });
  CHECK_FALSE(after.isHere());
  promised.fulfiller->fulfill(5);
  CHECK(std::move(after).promise().wait(l.scope) == 5);
  CHECK(seen == 5);
}

TEST_CASE("one step may be here and the next promised, and the other way round", "[reactor]") {
  Loop l;
  auto waits = Soon<int>(1).then([](int v) { return kj::evalLater([v] { return v + 1; }); });
  CHECK_FALSE(waits.isHere());
  auto after = std::move(waits).then([](int v) { return Soon<int>(v + 1); });
  CHECK(std::move(after).promise().wait(l.scope) == 3);
}

TEST_CASE("what a step throws is thrown by then, or by the promise", "[reactor]") {
  Loop l;
  auto fail = [](int) -> int { throw std::runtime_error("no"); };
  CHECK_THROWS(Soon<int>(1).then(fail));
  auto later = Soon<int>(kj::evalLater([] { return 1; })).then(fail);
  CHECK_THROWS(std::move(later).promise().wait(l.scope));
}

TEST_CASE("several are here when all are, and keep their order", "[reactor]") {
  Loop l;
  std::vector<Soon<int>> here;
  here.push_back(1);
  here.push_back(2);
  auto both = all(std::move(here));
  REQUIRE(both.isHere());
  CHECK(both.take() == std::vector<int>{1, 2});

  std::vector<Soon<int>> mixed;
  mixed.push_back(kj::evalLater([] { return 1; }));
  mixed.push_back(2);
  auto later = all(std::move(mixed));
  CHECK_FALSE(later.isHere());
  CHECK(std::move(later).promise().wait(l.scope) == std::vector<int>{1, 2});
}
