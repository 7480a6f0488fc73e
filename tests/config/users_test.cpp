#include "config/users.h"

#include <catch2/catch.hpp>

using namespace ts;

TEST_CASE("a user is a name or a number", "[config]") {
  CHECK(uidNamed("root") == uid_t(0));
  CHECK(uidNamed("990") == uid_t(990));
  for (const char* nobody : {"", "no-such-user", "-1", "99 ", "4294967295", "4294967296"})
    CHECK_FALSE(uidNamed(nobody));
}

TEST_CASE("a master's user that is nobody is named with its key, its file and the way out",
          "[config]") {
  auto text = unknownMasterUser("no-such-user", "/etc/timeslice/node.toml");
  CHECK_THAT(text, Catch::Contains("/etc/timeslice/node.toml: master_user is \"no-such-user\"") &&
                       Catch::Contains("create it or name a uid"));
}
