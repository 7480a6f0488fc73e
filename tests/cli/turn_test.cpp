#include "cli/turn.h"

#include <catch2/catch.hpp>

#include "cli/failure.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::cli;
using Catch::Matchers::Contains;

TEST_CASE("without a node daemon neither run nor slice starts the program", "[cli]") {
  test::TempDir dir;
  Places places;
  places.node = {dir / "none.sock", "--socket"};
  Options options;
  options.group = "g";
  options.program = {"touch", dir / "started"};
  for (bool slice : {false, true}) {
    try {
      if (slice) {
        sliceProgram(places, options);
      } else {
        runProgram(places, options);
      }
      FAIL("it went on");
    } catch (const Failure& failure) {
      CHECK(failure.exit() == Exit::Unreachable);
      CHECK_THAT(failure.what(), Contains("none.sock"));
    }
  }
  CHECK_FALSE(std::filesystem::exists(dir / "started"));
}
