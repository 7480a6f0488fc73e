#include <catch2/catch.hpp>

#include "config/address.h"
#include "config/config.h"

using namespace ts;
using namespace std::chrono_literals;

TEST_CASE("durations are a number and a unit, with or without a space", "[config]") {
  microseconds out{};
  std::string why;
  CHECK((parseDuration("30 s", out, why) && out == 30s));
  CHECK((parseDuration("1500ms", out, why) && out == 1500ms));
  CHECK((parseDuration("1.5 h", out, why) && out == 90min));
  CHECK((parseDuration("0 us", out, why) && out == 0s));
  CHECK((parseDuration("2 d", out, why) && out == 48h));
}

TEST_CASE("a duration that is none says why, and names the way out", "[config]") {
  microseconds out{};
  std::string why;
  CHECK_FALSE(parseDuration("30", out, why));
  CHECK(why == "\"30\" has no unit; add one of us, ms, s, min, h, d, like \"30 s\"");
  CHECK_FALSE(parseDuration("30 parsecs", out, why));
  CHECK_THAT(why, Catch::Contains("unknown unit \"parsecs\""));
  for (const char* text : {"", "soon", "-3 s", "nan s", "inf s", " 3 s"}) {
    CHECK_FALSE(parseDuration(text, out, why));
    CHECK_THAT(why, Catch::Contains("does not begin with a number"));
  }
  CHECK_FALSE(parseDuration("1000000000000000000000000000000 d", out, why));
  CHECK_THAT(why, Catch::Contains("too large"));
}

TEST_CASE("sizes know powers of ten and of two", "[config]") {
  std::uint64_t out = 0;
  std::string why;
  CHECK((parseBytes("512 MiB", out, why) && out == 512ull << 20));
  CHECK((parseBytes("16 GB", out, why) && out == 16'000'000'000ull));
  CHECK((parseBytes("1.5KiB", out, why) && out == 1536));
  CHECK_FALSE(parseBytes("512", out, why));
  CHECK_FALSE(parseBytes("512 mib", out, why));
  CHECK_THAT(why, Catch::Contains("use one of B, KB"));
}

TEST_CASE("addresses have a host and a port, and IPv6 has brackets", "[config]") {
  HostPort out;
  std::string why;
  CHECK((parseHostPort("10.0.0.1:6830", out, why) && out.host == "10.0.0.1" && out.port == 6830));
  CHECK((parseHostPort("[::1]:0", out, why) && out.host == "::1" && out.port == 0));
  CHECK((parseHostPort("master.cluster:1", out, why) && out.host == "master.cluster"));
  for (const char* text : {"", "6830", ":6830", "::1:6830", "[]:1", "host:", "host:x", "host:65536",
                           "host:-1", "host:1 "}) {
    CHECK_FALSE(parseHostPort(text, out, why));
    CHECK_THAT(why, Catch::Contains(std::string("\"") + text + "\""));
  }
  CHECK(isLoopbackHost("127.0.0.2"));
  CHECK(isLoopbackHost("::1"));
  CHECK(isLoopbackHost("::0001"));
  CHECK_FALSE(isLoopbackHost("127.example.com"));  // a name, of whatever machine
  CHECK_FALSE(isLoopbackHost("127.0.0.1.evil.org"));
  CHECK(isLoopbackHost("localhost"));
  CHECK_FALSE(isLoopbackHost("0.0.0.0"));
  CHECK_FALSE(isLoopbackHost("::"));
}
