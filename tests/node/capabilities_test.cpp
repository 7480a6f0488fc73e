#include "node/capabilities.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

using namespace ts::node;

namespace {

std::set<std::string> namesOfList() {
  std::set<std::string> names;
  for (const auto& c : kCapabilities) names.insert(c.name);
  return names;
}

std::set<std::string> namesInUnit() {
  std::ifstream in(NODE_UNIT);
  const std::string key = "CapabilityBoundingSet=";
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

std::uint64_t listed() {
  std::uint64_t set = 0;
  for (const auto& c : kCapabilities) set |= std::uint64_t(1) << c.number;
  return set;
}

// In a child, for it is for good. Its exit code has a bit for each set that is as it should be.
int keptByChild() {
  auto bound = capabilitySet("CapBnd");
  keepListedCapabilities();
  auto expected = listed() & bound;
  int fine = 0;
  if (capabilitySet("CapEff") == expected) fine |= 1;
  if (capabilitySet("CapPrm") == expected) fine |= 2;
  if (capabilitySet("CapBnd") == expected) fine |= 4;
  if (capabilitySet("CapInh") == 0 && capabilitySet("CapAmb") == 0) fine |= 8;
  return fine;
}

}  // namespace

TEST_CASE("FF-A18: the unit names the capabilities of the list and no others", "[node]") {
  CHECK(namesInUnit() == namesOfList());
}

TEST_CASE("FF-A18: a node daemon that is root keeps the listed capabilities only", "[node]") {
  if (::geteuid() != 0) {
    WARN("needs root");
    return;
  }
  pid_t child = ::fork();
  if (child == 0) ::_exit(keptByChild());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 15);
}
