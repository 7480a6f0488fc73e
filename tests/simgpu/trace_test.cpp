#include <catch2/catch.hpp>

#include <sstream>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("each line of the trace begins with the monotonic clock in nanoseconds", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  caller->value("lock " + job->self() + " 0");
  auto lines = linesOf(stage.trace());
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) CHECK(line.find(' ') - line.find('.') == 10);
  CHECK(std::stod(lines[0]) <= std::stod(lines[1]));
}

TEST_CASE("with trace = all every call is there, with its beginning and its end", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("trace", "all");
  job->value("alloc 65536");
  caller->value("state " + job->self());
  std::string own = " pid=" + job->self() + " caller=" + job->self();
  std::string asked = " pid=" + job->self() + " caller=" + caller->self();
  std::string trace = stage.trace();
  CHECK(trace.find(" begin cuMemAlloc" + own + "\n") != std::string::npos);
  CHECK(trace.find(" end cuMemAlloc" + own + " code=0\n") != std::string::npos);
  CHECK(trace.find(" begin state" + asked + "\n") != std::string::npos);
  CHECK(trace.find(" end state" + asked + " code=0\n") != std::string::npos);
}

TEST_CASE("with trace = off nothing is written", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("trace", "off");
  caller->value("lock " + job->self() + " 0");
  CHECK(stage.trace().empty());
}
