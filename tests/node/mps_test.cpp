#include "node/mps.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "temp_dir.h"

using namespace ts::node;
using ts::test::TempDir;

namespace {

// Process 7, of a /proc of the test's own.
struct Machine {
  TempDir dir;
  std::filesystem::path process = std::filesystem::path(dir.path()) / "7";

  explicit Machine(const std::string& environ) {
    std::filesystem::create_directories(process);
    std::ofstream(process / "environ") << environ;
  }
  std::filesystem::path controlIn(const std::string& directory) {
    auto at = process / ("root" + directory);
    std::filesystem::create_directories(at);
    std::ofstream(at / "control").flush();
    return at / "control";
  }
  std::string why() { return mpsClient(7, dir.path()); }
};

}  // namespace

TEST_CASE("FF-A23: a client of MPS is known by its pipe directory or by the default one",
          "[node]") {
  std::string given("A=1\0CUDA_MPS_PIPE_DIRECTORY=/mine\0", 34);
  Machine chosen(given), plain("A=1");
  CHECK(chosen.why() == "");
  CHECK(plain.why() == "");
  chosen.controlIn("/mine");
  plain.controlIn("/tmp/nvidia-mps");
  CHECK_THAT(chosen.why(), Catch::Contains("process 7 is an MPS client"));
  CHECK_THAT(plain.why(), Catch::Contains("/tmp/nvidia-mps"));
}

TEST_CASE("FF-A23: what a third user puts into the default directory keeps nobody out", "[node]") {
  if (::geteuid() != 0) return;  // only root can make it another's
  Machine plain("A=1");
  auto control = plain.controlIn("/tmp/nvidia-mps");
  REQUIRE(::chown(plain.process.c_str(), 1000, 1000) == 0);
  REQUIRE(::chown(control.c_str(), 1001, 1001) == 0);
  CHECK(plain.why() == "");
  REQUIRE(::chown(control.c_str(), 1000, 1000) == 0);
  CHECK(plain.why() != "");
}
