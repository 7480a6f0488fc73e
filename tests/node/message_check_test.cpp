#include "node/message_check.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

using namespace ts::node;

namespace {

tsl_message hello() {
  tsl_message m{};
  m.header = {TSL_MAGIC, TSL_VERSION, TSL_HELLO, 1};
  return m;
}

}  // namespace

TEST_CASE("a good message passes", "[node]") {
  CHECK_FALSE(checkMessage(hello(), 256, false, 0));
  auto m = hello();
  m.header.type = TSL_JOIN;
  m.header.request = 9;
  CHECK_FALSE(checkMessage(m, 256, false, 8));
}

TEST_CASE("request numbers grow, except a cancel's, which another thread may overtake", "[node]") {
  auto m = hello();
  m.header.type = TSL_YIELD;
  m.header.request = 8;
  CHECK_FALSE(checkMessage(m, 256, false, 7));
  CHECK(checkMessage(m, 256, false, 8));
  CHECK(checkMessage(m, 256, false, 9));
  m.header.type = TSL_CANCEL;
  CHECK_FALSE(checkMessage(m, 256, false, 9));
  CHECK_FALSE(checkMessage(m, 256, false, 0));  // a new connection, whose hello it overtook
}

TEST_CASE("no random bytes are taken for a message, and all are looked at inside their bounds",
          "[node]") {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    tsl_message m;
    auto* bytes = reinterpret_cast<unsigned char*>(&m);
    for (std::size_t k = 0; k < sizeof(m); ++k) bytes[k] = std::uint8_t(random());
    if (i % 2) {
      m.header.magic = TSL_MAGIC;
      m.header.version = TSL_VERSION;
      m.header.type %= 70;
    }
    auto rejection =
        checkMessage(m, random() % 3 ? 256 : random() % 300, random() % 5 == 0, random());
    if (rejection)
      CHECK_FALSE(rejection->why.empty());
    else
      CHECK(m.header.magic == TSL_MAGIC);
  }
}

TEST_CASE("each text must end inside its field", "[node]") {
  auto m = hello();
  m.header.request = 2;
  SECTION("devices") {
    m.header.type = TSL_CLAIM;
    std::memset(m.u.claim.devices, 'x', sizeof(m.u.claim.devices));
  }
  SECTION("group") {
    m.header.type = TSL_JOIN;
    std::memset(m.u.join.group, 'x', sizeof(m.u.join.group));
  }
  SECTION("job") {
    m.header.type = TSL_JOIN;
    std::memset(m.u.join.job, 'x', sizeof(m.u.join.job));
  }
  SECTION("backend") {
    m.header.type = TSL_JOIN;
    std::memset(m.u.join.backend, 'x', sizeof(m.u.join.backend));
  }
  SECTION("phase") {
    m.header.type = TSL_ACQUIRE;
    std::memset(m.u.acquire.phase, 'x', sizeof(m.u.acquire.phase));
  }
  auto rejection = checkMessage(m, 256, false, 1);
  REQUIRE(rejection);
  CHECK(rejection->status == TSL_PROTOCOL);
  CHECK(rejection->request == 2);
}

TEST_CASE("names are letters, digits and few signs; what is shown is printable", "[node]") {
  CHECK(isName("a-Z0._"));
  for (auto bad : {"", "a/b", "a b", "a\n", "ä", "a\tb"}) CHECK_FALSE(isName(bad));
  CHECK(printable("a\n\x01z\xff") == "a??z?");
}
