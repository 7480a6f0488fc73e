#include "config/step_name.h"

#include <catch2/catch.hpp>

using ts::isStepName;

TEST_CASE("a step's name is told from any other", "[config]") {
  for (auto name : {"17.0", "17.batch", "17.interactive", "17-1.0", "17-12.batch"}) {
    INFO(name);
    CHECK(isStepName(name));
  }
  for (auto name :
       {"", "17", "17.", ".0", "a.0", "17.a", "17-.0", "-1.0", "17-a.0", "17-1-2.0", "17.0.0"}) {
    INFO(name);
    CHECK_FALSE(isStepName(name));
  }
}
