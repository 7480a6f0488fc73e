#include "cli/turn.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "cli/failure.h"
#include "support/fake_node.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::cli;
using Catch::Matchers::Contains;

namespace {

// A node daemon, and an environment that is as it was when the test is over.
struct Here {
  test::TempDir dir;
  test::FakeNode node{dir / "node.sock"};
  Places places;
  Options options;
  Here() {
    places.node = {dir / "node.sock", "--socket"};
    options.group = "g";
  }
  ~Here() {
    for (const char* name : {"TIMESLICE_SOCKET", "TIMESLICE_GROUP", "TIMESLICE_JOB"})
      ::unsetenv(name);
  }
};

}  // namespace

TEST_CASE("a job is named after its program, in signs that a name may have", "[cli]") {
  Here here;
  std::filesystem::create_symlink("/bin/true", here.dir / "g++ 12");
  here.options.program = {here.dir / "g++ 12"};
  REQUIRE(sliceProgram(here.places, here.options) == 0);
  CHECK_THAT(here.node.waitFor(TSL_JOIN).u.join.job, Catch::StartsWith("g___12."));
}

TEST_CASE("a program's exit code is known also where children are reaped unasked", "[cli]") {
  Here here;
  auto before = std::signal(SIGCHLD, SIG_IGN);
  here.options.program = {"sh", "-c", "exit 7"};
  REQUIRE(sliceProgram(here.places, here.options) == 7);
  std::signal(SIGCHLD, before);
  here.node.waitFor(TSL_YIELD);
}

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
