#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

struct Said {
  int status;
  std::string text;
};

Said run(const std::string& arguments) {
  std::string command = std::string(std::getenv("SIMGPU_CARD")) + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Said said{0, {}};
  for (int c; (c = std::fgetc(pipe)) != EOF;) said.text += static_cast<char>(c);
  said.status = WEXITSTATUS(::pclose(pipe));
  return said;
}

}  // namespace

TEST_CASE("simgpu-card makes cards that programs use, and shows who is on them", "[simgpu]") {
  Stage place;
  std::string dir = place.dir() + "/made";
  REQUIRE(run("create " + dir + " --cards 2 --bytes 8MiB --h2d 4GB/s --lock 1ms").status == 0);
  Actor job(dir, {});
  job.value("start 1");
  job.value("alloc 1048576");
  Said shown = run("show " + dir + " --json");
  CHECK(shown.status == 0);
  CHECK(shown.text.find("\"used_bytes\":1048576") != std::string::npos);
  CHECK(shown.text.find("\"pid\":" + job.self() + ",\"bytes\":1048576,\"state\":\"running\"") !=
        std::string::npos);
  CHECK(run("show " + dir).text.find("used 1 of 8 MiB") != std::string::npos);
}

TEST_CASE("simgpu-card sets a knob, and refuses one that is none", "[simgpu]") {
  Stage stage;
  CHECK(run("set " + stage.dir() + "/0 h2d=1GB/s hang.lock=yes").status == 0);
  CHECK(stage.card().settings()->h2dRate == 1'000'000'000);
  CHECK(stage.card().settings()->hang.at("lock"));
  Said refused = run("set " + stage.dir() + "/0 h2d=quick");
  CHECK(refused.status == 1);
  CHECK(refused.text.find("'quick'") != std::string::npos);
  CHECK(stage.card().settings()->h2dRate == 1'000'000'000);
  CHECK(run("set " + stage.dir() + "/0 hang.lock=").status == 0);
  CHECK(stage.card().settings()->hang.empty());
}

TEST_CASE("simgpu-card does not make cards where there are some", "[simgpu]") {
  Stage stage;
  CHECK(run("create " + stage.dir()).status == 1);
  CHECK(run("create " + stage.dir() + "/x --bytes nonsense").status == 1);
  CHECK(run("show /nowhere").status == 1);
  CHECK(run("").status == 2);
}

TEST_CASE("simgpu-card explains itself with examples when it is asked to", "[simgpu]") {
  Said said = run("--help");
  CHECK(said.status == 0);
  CHECK(said.text.find("Examples:") != std::string::npos);
}
