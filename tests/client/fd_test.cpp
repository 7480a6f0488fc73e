#include <poll.h>

#include "client/support.h"

using namespace ts::test;

namespace {

bool readable(ts_client* client) {
  pollfd fd{ts_fd(client), POLLIN, 0};
  return ::poll(&fd, 1, 0) == 1;
}

ts_status finishWhenReadable(ts_client* client, ts_grant* grant = nullptr) {
  ts_status status = ts_acquire_finish(client, grant);
  while (status == TS_ERR_BUSY) {
    waitReadable(client);
    status = ts_acquire_finish(client, grant);
  }
  return status;
}

ts_status yieldWhenReadable(ts_client* client) {
  ts_status status = ts_yield_start(client);
  if (status != TS_OK) return status;
  while ((status = ts_yield_finish(client)) == TS_ERR_BUSY) waitReadable(client);
  return status;
}

}  // namespace

TEST_CASE("a loop asks, polls and finishes", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  CHECK(ts_acquire_finish(client, nullptr) == TS_ERR_BUSY);
  CHECK(ts_acquire_start(client, nullptr) == TS_ERR_BUSY);
  CHECK_FALSE(readable(client));
  house.node.waitFor(TSL_ACQUIRE);
  house.node.grant();
  ts_grant grant{};
  grant.size = sizeof grant;
  CHECK(finishWhenReadable(client, &grant) == TS_OK);
  CHECK(grant.epoch == 1);
  CHECK_FALSE(readable(client));
  CHECK(yieldWhenReadable(client) == TS_OK);
  CHECK_FALSE(readable(client));
}

TEST_CASE("a nested start is finished at once, and the descriptor says so", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  CHECK(readable(client));
  CHECK(ts_acquire_finish(client, nullptr) == TS_OK);
  CHECK_FALSE(readable(client));
  CHECK(client.state().depth == 2);
}

TEST_CASE("a started acquire ends at its deadline without a timer of the loop's", "[client]") {
  House house;
  Joined client(house);
  const ts_acquire_options options = within(15);
  SECTION("when the node says so") {
    house.node.hold(TSL_ACQUIRE);
  }
  SECTION("when the node hangs") {
    house.node.ignore(TSL_ACQUIRE);
  }
  REQUIRE(ts_acquire_start(client, &options) == TS_OK);
  CHECK(finishWhenReadable(client) == TS_ERR_TIMED_OUT);
}

TEST_CASE("a started acquire is cancelled", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  SECTION("by the node's answer") {}
  SECTION("while the node hangs") {
    house.node.ignore(TSL_CANCEL);
  }
  SECTION("while there is no node") {
    house.node.goAway();
  }
  REQUIRE(ts_cancel(client) == TS_OK);
  CHECK(finishWhenReadable(client) == TS_ERR_CANCELLED);
}

TEST_CASE("the descriptor stays the same while daemons come and go", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  const int fd = ts_fd(client);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  house.node.waitFor(TSL_ACQUIRE);
  house.node.goAway();
  waitReadable(client);
  CHECK(ts_acquire_finish(client, nullptr) == TS_ERR_BUSY);
  house.node.answer(TSL_ACQUIRE, TSL_OK);
  house.node.comeBack();
  CHECK(finishWhenReadable(client) == TS_OK);
  CHECK(ts_fd(client) == fd);
}

TEST_CASE("an answer that another thread's call took in is still shown to the loop", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  REQUIRE(ts_fd(client) >= 0);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  house.node.waitFor(TSL_ACQUIRE);
  house.node.grant();
  while (client.state().entered == 0) static_cast<void>(ts_should_yield(client));
  CHECK(readable(client));
  CHECK(ts_acquire_finish(client, nullptr) == TS_OK);
}

TEST_CASE("a yield that waits for the daemon does not block the loop", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.ignore(TSL_YIELD);
  REQUIRE(ts_yield_start(client) == TS_OK);
  CHECK(ts_yield_start(client) == TS_ERR_BUSY);
  CHECK(ts_yield_finish(client) == TS_ERR_BUSY);
  CHECK(client.state().entered == 0);
  house.node.waitFor(TSL_YIELD);
  house.node.answer(TSL_YIELD, TSL_OK);
  house.node.closeAll();
  ts_status status;
  while ((status = ts_yield_finish(client)) == TS_ERR_BUSY) waitReadable(client);
  CHECK(status == TS_OK);
  CHECK(house.node.count(TSL_YIELD) == 2);
}
