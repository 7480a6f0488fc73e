#include <sys/wait.h>
#include <unistd.h>

#include "client/support.h"

using namespace ts::test;

namespace {

// Runs `f` in a forked child and answers its exit code.
template <class F>
int inChild(F f) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(f());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("FF-E4: a child may do nothing with its parent's handle", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(inChild([&] { return static_cast<int>(ts_acquire(client, nullptr, nullptr)); }) ==
        TS_ERR_FORKED);
  CHECK(inChild([&] { return static_cast<int>(ts_yield(client)); }) == TS_ERR_FORKED);
  CHECK(inChild([&] { return static_cast<int>(ts_cancel(client)); }) == TS_ERR_FORKED);
  CHECK(inChild([&] { return ts_should_yield(client) + (ts_fd(client) == -1 ? 10 : 0); }) == 10);
  CHECK(client.state().entered == 1);
  CHECK(house.node.count(TSL_YIELD) == 0);
}

TEST_CASE("a child that leaves takes nothing from its parent", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_fd(client) >= 0);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(inChild([&] {
          ts_leave(client);
          return 0;
        }) == 0);
  CHECK(house.node.count(TSL_LEAVE) == 0);
  CHECK(ts_yield(client) == TS_OK);
  CHECK(house.node.count(TSL_JOIN) == 1);
}

TEST_CASE("a child joins anew", "[client]") {
  House house;
  Joined client(house);
  const ts_join_options options = house.options();
  const int code = inChild([&] {
    ts_client* own = nullptr;
    if (ts_join(&options, &own) != TS_OK) return 1;
    if (ts_acquire(own, nullptr, nullptr) != TS_OK) return 2;
    if (ts_yield(own) != TS_OK) return 3;
    ts_leave(own);
    return 0;
  });
  CHECK(code == 0);
  CHECK(house.node.count(TSL_JOIN) == 2);
  CHECK(house.node.count(TSL_LEAVE) == 1);
}

TEST_CASE("the reason in a child names both processes", "[client]") {
  House house;
  Joined client(house);
  const std::string parent = std::to_string(::getpid());
  CHECK(inChild([&] {
          if (ts_yield(client) != TS_ERR_FORKED) return 1;
          const std::string text = ts_last_error();
          return text.find(parent) != std::string::npos &&
                         text.find(std::to_string(::getpid())) != std::string::npos
                     ? 0
                     : 2;
        }) == 0);
}
