#include <thread>

#include "client/support.h"

using namespace ts::test;

TEST_CASE("FF-D17, P83: a waiting acquire outlives the daemon", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  ts_join_options options = house.options();
  options.job = "same";
  options.devices = "0";
  Joined client(options);
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.goAway();
    house.node.comeBack();
    house.node.waitFor(TSL_ACQUIRE, 2);
    house.node.grant();
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  daemon.join();
  CHECK(std::string(house.node.waitFor(TSL_JOIN, 2).u.join.job) == "same");
  CHECK(house.node.devices() == "0");
  CHECK(ts_yield(client) == TS_OK);
}

TEST_CASE("an acquire whose daemon stays away ends at its deadline", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.goAway();
  });
  const ts_acquire_options options = within(60);
  CHECK(ts_acquire(client, &options, nullptr) == TS_ERR_UNAVAILABLE);
  CHECK(errorSays("tsnoded --config /etc/timeslice/node.toml"));
  CHECK(errorSays(house.socket));
  daemon.join();
}

TEST_CASE("a daemon that says it stops is waited for", "[client]") {
  House house;
  house.node.answer(TSL_ACQUIRE, TSL_SHUTDOWN);
  Joined client(house);
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.answer(TSL_ACQUIRE, TSL_OK);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  daemon.join();
}

TEST_CASE("a grant that got lost with the connection is found again", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.answer(TSL_ACQUIRE, TSL_OK);
    house.node.resumeWith(41);
    house.node.closeAll();
  });
  ts_grant grant{};
  grant.size = sizeof grant;
  CHECK(ts_acquire(client, nullptr, &grant) == TS_OK);
  daemon.join();
  CHECK(grant.epoch == 41);
  CHECK(ts_yield(client) == TS_OK);
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 41);
}

TEST_CASE("a slice that the caller gave up is yielded when the node still has it", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.hold(TSL_JOIN);
    house.node.closeAll();
    house.node.waitFor(TSL_JOIN, 2);
    static_cast<void>(!ts_cancel(client));
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_CANCELLED);
  daemon.join();
  house.node.resumeWith(5);
  house.node.grant();  // the join
  while (house.node.count(TSL_YIELD) == 0) static_cast<void>(ts_should_yield(client));
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 5);
}

TEST_CASE("a holder keeps its slice while the daemon restarts", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.resumeWith(1);
  house.node.goAway();
  house.node.comeBack();
  CHECK(client.state().entered == 1);
  REQUIRE(ts_yield(client) == TS_OK);
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 1);
  CHECK(house.node.count(TSL_JOIN) == 2);
}

TEST_CASE("a holder that only asks whether to yield comes back too", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.closeAll();
  while (house.node.count(TSL_JOIN) < 2) CHECK(ts_should_yield(client) == 0);
  house.node.askYield();
  while (ts_should_yield(client) == 0) waitReadable(client);
}

TEST_CASE("a slice that ended while the daemon was away is told, and the next turn is asked for",
          "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.voidSlices();
  house.node.closeAll();
  while (ts_should_yield(client) == 0) waitReadable(client);
  CHECK(client.state().entered == 0);
  CHECK(ts_yield(client) == TS_OK);  // one level
  SECTION("by the yield") {
    CHECK(ts_yield(client) == TS_ERR_STALE);
    CHECK(errorSays("ended while the node daemon at " + house.socket + " was away"));
    CHECK(ts_yield(client) == TS_ERR_NOT_ENTERED);
    CHECK(ts_should_yield(client) == 0);
    CHECK(house.node.count(TSL_YIELD) == 0);
    CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
    CHECK(client.state().depth == 1);
  }
  SECTION("and an acquire inside puts what is around it in the new slice") {
    ts_grant grant{};
    grant.size = sizeof grant;
    CHECK(ts_acquire(client, nullptr, &grant) == TS_OK);
    CHECK(grant.epoch == 2);
    CHECK(client.state().depth == 2);
    CHECK(ts_should_yield(client) == 0);
    CHECK(ts_yield(client) == TS_OK);
    CHECK(house.node.count(TSL_YIELD) == 0);
    CHECK(ts_yield(client) == TS_OK);
    CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 2);
  }
  SECTION("and who leaves owes nothing") {
    client.leave();
    CHECK(house.node.count(TSL_YIELD) == 0);
    CHECK(house.node.count(TSL_LEAVE) == 1);
  }
  CHECK(house.node.count(TSL_HELLO) == 2);
}

TEST_CASE("a node that has the holder in another slice gets that one back", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.resumeWith(41);
  house.node.closeAll();
  while (ts_should_yield(client) == 0) waitReadable(client);
  CHECK(ts_yield(client) == TS_OK);
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 41);
}

TEST_CASE("a yield of a slice that the node knows nothing of is stale", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.answer(TSL_YIELD, TSL_NOT_ENTERED, "in no slice here");
  CHECK(ts_yield(client) == TS_ERR_STALE);
  CHECK(errorSays("in no slice here"));
}

TEST_CASE("FF-D4, FF-D17: a yield in flight is repeated with its epoch", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.ignore(TSL_YIELD);
  std::thread daemon([&] {
    house.node.waitFor(TSL_YIELD);
    house.node.answer(TSL_YIELD, TSL_STALE);  // the first copy was recorded
    house.node.closeAll();
  });
  CHECK(ts_yield(client) == TS_OK);
  daemon.join();
  CHECK(house.node.waitFor(TSL_YIELD, 2).u.yield.epoch_counter == 1);
}

TEST_CASE("a yield that is stale the first time is told so", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  house.node.answer(TSL_YIELD, TSL_STALE, "evicted in the meantime");
  CHECK(ts_yield(client) == TS_ERR_STALE);
  CHECK(errorSays("evicted in the meantime"));
}

TEST_CASE("a daemon that has not noticed the old connection's end is asked again", "[client]") {
  House house;
  Joined client(house);
  house.node.answer(TSL_JOIN, TSL_ALREADY_JOINED);
  house.node.closeAll();
  std::thread daemon([&] {
    house.node.waitFor(TSL_JOIN, 3);
    house.node.answer(TSL_JOIN, TSL_OK);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  daemon.join();
}

TEST_CASE("a participant that may not come back is told why", "[client]") {
  House house;
  Joined client(house);
  house.node.answer(TSL_JOIN, TSL_EVICTED, "by the operator");
  house.node.closeAll();
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_EVICTED);
  CHECK(errorSays("by the operator"));
  house.node.answer(TSL_JOIN, TSL_OK);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
}

TEST_CASE("nonsense from a daemon costs the connection and is named", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  const auto bytes =
      GENERATE(std::string("short"), std::string(256, 'x'), std::string(300, 'y'), std::string());
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.sendRaw(bytes);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_PROTOCOL);
  CHECK(errorSays("no message of the protocol"));
  daemon.join();
  house.node.answer(TSL_ACQUIRE, TSL_OK);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
}

TEST_CASE("a message of a kind that is not known is passed over", "[client]") {
  House house;
  Joined client(house);
  tsl_message later{};
  later.header = {TSL_MAGIC, TSL_VERSION, 99, 0};
  house.node.sendRaw(std::string(reinterpret_cast<const char*>(&later), sizeof later));
  later.header = {TSL_MAGIC, TSL_VERSION, TSL_REPLY, 123456};  // answers nothing that was asked
  house.node.sendRaw(std::string(reinterpret_cast<const char*>(&later), sizeof later));
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
}

TEST_CASE("a join that is late says what ended its tries, or that nobody answers", "[client]") {
  House house;
  // Tries come after 10, 20, 40, 80, 160 and 320 ms: by the deadline the second is old, the seventh
  // is not.
  std::size_t closes = GENERATE(1, 6);
  house.node.ignore(TSL_JOIN, closes);
  ts_client* client = nullptr;
  auto options = house.options();
  options.deadline_ms = 1000;
  CHECK(ts_join(&options, &client) != TS_OK);
  CHECK(errorSays(closes == 1 ? "does not answer" : "the connection was closed"));
}
