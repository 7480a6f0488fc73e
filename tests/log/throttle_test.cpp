#include "log/throttle.h"

#include <catch2/catch.hpp>

using namespace ts;
using namespace std::chrono_literals;

TEST_CASE("FF-E1: of a flood of lines one a second is told, and how many were not", "[log]") {
  Throttle throttle;
  Throttle::Time now{5s};
  Line first("refused"), flood("refused"), later("refused"), calm("refused");
  CHECK(throttle.admits(first, now));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(throttle.admits(flood, now + 1ms * (i % 999)));
  CHECK(throttle.admits(later, now + 1s));
  CHECK(later.text() == "refused untold=1000");
  CHECK(throttle.admits(calm, now + 2s));
  CHECK(calm.text() == "refused");
}
