#include "node/claim.h"

#include <catch2/catch.hpp>

using namespace ts::node;

namespace {

const std::vector<NamedDevice> kTwo{{0, "GPU-aa11-x", ""}, {1, "GPU-aa22-y", ""}};

using Indices = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a claim without words is every device", "[node]") {
  CHECK(parseClaim("", kTwo).devices == Indices{0, 1});
  CHECK(parseClaim("  ", kTwo).devices == Indices{0, 1});
  CHECK(parseClaim("", {}).devices.empty());
}

TEST_CASE("a claim names devices by index, UUID or the beginning of one", "[node]") {
  CHECK(parseClaim("1", kTwo).devices == Indices{1});
  CHECK(parseClaim("1, 0,1", kTwo).devices == Indices{0, 1});
  CHECK(parseClaim("GPU-aa22-y", kTwo).devices == Indices{1});
  CHECK(parseClaim("GPU-aa1", kTwo).devices == Indices{0});
  CHECK(parseClaim("GPU-aa1,1", kTwo).devices == Indices{0, 1});
}

TEST_CASE("a claim can say that it is none", "[node]") {
  for (auto text : {"none", "-1", "NoDevFiles"}) {
    CHECK(parseClaim(text, kTwo).ok);
    CHECK(parseClaim(text, kTwo).devices.empty());
  }
}

TEST_CASE("half a claim is no claim: the first mistake refuses it and is named", "[node]") {
  auto why = [](const char* text) {
    auto claim = parseClaim(text, kTwo);
    CHECK_FALSE(claim.ok);
    return claim.why;
  };
  CHECK(why("0,7").find("device 7") != std::string::npos);
  CHECK(why("0,,1").find("empty") != std::string::npos);
  CHECK(why("0,").find("empty") != std::string::npos);
  CHECK(why("GPU-aa").find("several") != std::string::npos);
  CHECK(why("GPU-zz").find("GPU-zz") != std::string::npos);
  CHECK(why("MIG-1").find("MIG") != std::string::npos);
  CHECK(why("4294967296").find("4294967296") != std::string::npos);
  CHECK(why("0x1").find("0x1") != std::string::npos);
}
