#include "cli/places.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "cli/failure.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::cli;
using Catch::Matchers::Contains;

namespace {

struct Environment {
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

private:
  const char* name_;
};

// Options whose node configuration has this text.
struct Fixture {
  test::TempDir dir;
  Options options;
  explicit Fixture(const std::string& toml = "") {
    options.nodeConfig = dir / "node.toml";
    if (!toml.empty()) std::ofstream(options.nodeConfig) << toml;
  }
};

}  // namespace

TEST_CASE("what is said on the command line wins over environment and configuration", "[cli]") {
  Fixture f("master = \"10.0.0.3:1\"\nsocket = \"/x/node.sock\"\nauth = \"none\"\n");
  CHECK(findPlaces(f.options).master.address == "10.0.0.3:1");
  CHECK(findPlaces(f.options).master.from == f.options.nodeConfig);
  CHECK(findPlaces(f.options).node.address == "/x/node.sock");
  CHECK(findPlaces(f.options).auth == "none");
  Environment master("TIMESLICE_MASTER", "10.0.0.2:1"), socket("TIMESLICE_SOCKET", "/y");
  CHECK(findPlaces(f.options).master.from == "TIMESLICE_MASTER");
  CHECK(findPlaces(f.options).node.address == "/y");
  f.options.master = "10.0.0.1:1";
  f.options.auth = "munge";
  CHECK(findPlaces(f.options).master.address == "10.0.0.1:1");
  CHECK(findPlaces(f.options).auth == "munge");
}

TEST_CASE("only a file that was read says who the master is", "[cli]") {
  CHECK(findPlaces(Fixture().options).masterUserFrom == "the default");
  Fixture said("master_user = \"root\"\n");
  CHECK(findPlaces(said.options).masterUserFrom == said.options.nodeConfig);
}

TEST_CASE("P46: a host alone has the usual port, and a path is a socket", "[cli]") {
  Fixture f;
  for (auto [said, meant] : {std::pair{"gpu-master", "gpu-master:6830"},
                             {"[fd00::1]", "[fd00::1]:6830"},
                             {"/run/m.sock", "unix:/run/m.sock"},
                             {"unix:/run/m.sock", "unix:/run/m.sock"}}) {
    f.options.master = said;
    CHECK(findPlaces(f.options).master.address == meant);
  }
}

TEST_CASE("a master elsewhere has to be proven to, unless somebody says otherwise", "[cli]") {
  Fixture f;
  f.options.master = "10.0.0.1:1";
  CHECK_FALSE(findPlaces(f.options).authByMaster);
  f.options.master = "127.0.0.1:1";
  CHECK(findPlaces(f.options).authByMaster);
  f.options.auth = "munge";
  CHECK_FALSE(findPlaces(f.options).authByMaster);
}

TEST_CASE("an address that is none is a usage error that names it", "[cli]") {
  Fixture f;
  f.options.master = "host:port";
  CHECK_THROWS_WITH(findPlaces(f.options), Contains("--master: \"host:port\""));
}

TEST_CASE("a node configuration with mistakes is exit 78, with its place", "[cli]") {
  Fixture f("masterr = \"x\"\n");
  try {
    findPlaces(f.options);
    FAIL("it was taken");
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::BadConfig);
    CHECK_THAT(failure.what(), Contains("node.toml:1:1: unknown key \"masterr\""));
  }
}
