#include <catch2/catch.hpp>

#include <cstdlib>

#include "simgpu/stage.h"

using namespace simgpu_test;

TEST_CASE("a plain driver-API program in C works as on a card and leaves nothing behind",
          "[simgpu]") {
  Stage stage;
  std::string command = "SIMGPU_CARDS=" + stage.dir() + " " + std::getenv("SIMGPU_PLAIN_PROGRAM");
  CHECK(std::system(command.c_str()) == 0);
  stage.host().reclaim();
  CHECK(stage.card().usedBytes() == 0);
}
