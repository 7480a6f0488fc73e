#include <thread>

#include "client/support.h"

using namespace ts::test;

TEST_CASE("FF-I7, P50: a grant tells the epoch, the wait and what moved", "[client]") {
  House house;
  house.node.setWaiters(3);
  Joined client(house);
  ts_acquire_options options = within(5000);
  options.phase = "train";
  ts_grant grant{};
  grant.size = sizeof grant;
  REQUIRE(ts_acquire(client, &options, &grant) == TS_OK);
  CHECK(grant.epoch == 1);
  CHECK(grant.generation == 1);
  CHECK(grant.waited_us == 7);
  CHECK(grant.moved_bytes == 4096);
  CHECK(grant.restored == 1);
  const tsl_message asked = house.node.waitFor(TSL_ACQUIRE);
  CHECK(std::string(asked.u.acquire.phase) == "train");
  CHECK(asked.u.acquire.deadline_ms <= 5000);
  CHECK(asked.u.acquire.deadline_ms > 0);
  CHECK(client.state().entered == 1);
  CHECK(client.state().waiters == 3);
  REQUIRE(ts_yield(client) == TS_OK);
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 1);
  CHECK(client.state().entered == 0);
}

TEST_CASE("no deadline is no deadline for the node either", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(house.node.waitFor(TSL_ACQUIRE).u.acquire.deadline_ms == -1);
}

TEST_CASE("the node sees the outermost pair only", "[client]") {
  House house;
  Joined client(house);
  for (int i = 0; i < 3; ++i) REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  REQUIRE(ts_try_acquire(client, nullptr) == TS_OK);
  CHECK(client.state().depth == 4);
  for (int i = 0; i < 3; ++i) REQUIRE(ts_yield(client) == TS_OK);
  CHECK(client.state().entered == 1);
  CHECK(house.node.count(TSL_YIELD) == 0);
  REQUIRE(ts_yield(client) == TS_OK);
  CHECK(house.node.count(TSL_ACQUIRE) == 1);
  CHECK(house.node.count(TSL_YIELD) == 1);
}

TEST_CASE("P39: a yield without a slice is refused and changes nothing", "[client]") {
  House house;
  Joined client(house);
  CHECK(ts_yield(client) == TS_ERR_NOT_ENTERED);
  CHECK(errorSays("in no slice"));
  CHECK(house.node.count(TSL_YIELD) == 0);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  REQUIRE(ts_yield(client) == TS_OK);
  CHECK(ts_yield(client) == TS_ERR_NOT_ENTERED);
}

TEST_CASE("the way out of a refusal names the job, the group, or nothing", "[client]") {
  House house;
  ts_join_options options = house.options();
  options.job = "one";
  Joined client(options);
  const auto [status, sentence] = GENERATE(table<int, const char*>(
      {{TSL_TIMED_OUT,
        "acquire in group 'rl': TIMED_OUT: why (node daemon at $); tsctl jobs --group rl shows who "
        "holds"},
       {TSL_FAULTED,
        "acquire in group 'rl': FAULTED: why (node daemon at $); tsctl why rl/one says what "
        "happened"},
       {TSL_NO_CLAIM,
        "acquire in group 'rl': NO_CLAIM: why (node daemon at $); tell the operator: tsctl doctor "
        "says why"},
       {TSL_PAUSED, "acquire in group 'rl': PAUSED: why (node daemon at $)"}}));
  house.node.answer(TSL_ACQUIRE, status, "why");
  CHECK(ts_acquire(client, nullptr, nullptr) == status);
  std::string expected = sentence;
  CHECK(ts_last_error() == expected.replace(expected.find('$'), 1, house.socket));
}

TEST_CASE("every refusal of the node reaches the caller with its reason", "[client]") {
  House house;
  Joined client(house);
  for (int status = TSL_INVALID; status <= TSL_MASTER_DOWN; ++status) {
    if (status == TSL_SHUTDOWN) continue;  // then the next daemon is asked
    house.node.answer(TSL_ACQUIRE, status, "reason " + std::to_string(status));
    CHECK(ts_acquire(client, nullptr, nullptr) == status);
    CHECK(errorSays("reason " + std::to_string(status)));
    CHECK(errorSays(ts_strerror(static_cast<ts_status>(status))));
  }
  house.node.answer(TSL_ACQUIRE, 77);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_INTERNAL);
  CHECK(errorSays("answered 77"));
  house.node.answer(TSL_ACQUIRE, TSL_OK);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
}

TEST_CASE("every status has a name", "[client]") {
  CHECK(std::string(ts_strerror(TS_OK)) == "OK");
  CHECK(std::string(ts_strerror(TS_ERR_MASTER_DOWN)) == "MASTER_DOWN");
  CHECK(std::string(ts_strerror(static_cast<ts_status>(99))) == "UNKNOWN");
  CHECK(std::string(ts_version()) == "0.1.0");
}

TEST_CASE("a deadline that passes ends the acquire", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  const ts_acquire_options options = within(20);
  CHECK(ts_acquire(client, &options, nullptr) == TS_ERR_TIMED_OUT);
  CHECK(errorSays("job other holds"));
  CHECK(client.state().entered == 0);
}

TEST_CASE("a deadline holds also when the daemon hangs", "[client]") {
  House house;
  house.node.ignore(TSL_ACQUIRE);
  Joined client(house);
  const ts_acquire_options options = within(20);
  CHECK(ts_acquire(client, &options, nullptr) == TS_ERR_TIMED_OUT);
  CHECK(errorSays("does not answer"));
  house.node.waitClosed();  // a late grant must find nobody
}

TEST_CASE("a try does not wait", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  CHECK(ts_try_acquire(client, nullptr) == TS_ERR_BUSY);
  CHECK(house.node.waitFor(TSL_ACQUIRE).u.acquire.deadline_ms == 0);
  house.node.answer(TSL_ACQUIRE, TSL_OK);
  CHECK(ts_try_acquire(client, nullptr) == TS_OK);
}

TEST_CASE("bad arguments are refused before the node is asked", "[client]") {
  House house;
  Joined client(house);
  ts_grant unsized{};
  CHECK(ts_acquire(client, nullptr, &unsized) == TS_ERR_INVALID);
  CHECK(errorSays("sizeof(ts_grant)"));
  ts_acquire_options options = within(0);
  options.phase = "a phase with more bytes than there are";
  CHECK(ts_acquire(client, &options, nullptr) == TS_ERR_INVALID);
  CHECK(errorSays("at most 31"));
  CHECK(ts_acquire(nullptr, nullptr, nullptr) == TS_ERR_INVALID);
  CHECK(ts_yield(nullptr) == TS_ERR_INVALID);
  CHECK(ts_cancel(nullptr) == TS_ERR_INVALID);
  CHECK(ts_should_yield(nullptr) == 0);
  CHECK(ts_fd(nullptr) == -1);
  CHECK(ts_acquire_finish(client, nullptr) == TS_ERR_INVALID);
  CHECK(ts_yield_finish(client) == TS_ERR_INVALID);
  CHECK(house.node.count(TSL_ACQUIRE) == 0);
}

TEST_CASE("an older grant struct is filled as far as it reaches", "[client]") {
  House house;
  Joined client(house);
  ts_grant grant{};
  grant.size = offsetof(ts_grant, generation);
  grant.moved_bytes = 1;
  REQUIRE(ts_acquire(client, nullptr, &grant) == TS_OK);
  CHECK(grant.epoch == 1);
  CHECK(grant.moved_bytes == 1);
}

TEST_CASE("a request to yield is seen once the node has made it", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(ts_should_yield(client) == 0);
  house.node.askYield();
  waitReadable(client);
  CHECK(ts_should_yield(client) == 1);
  CHECK(ts_should_yield(client) == 1);
  REQUIRE(ts_yield(client) == TS_OK);
  CHECK(ts_should_yield(client) == 0);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(ts_should_yield(client) == 0);
}

TEST_CASE("a request to yield that crosses the yield is forgotten", "[client]") {
  House house;
  Joined client(house);
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  REQUIRE(ts_yield(client) == TS_OK);
  house.node.askYield();
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(ts_should_yield(client) == 0);
}

TEST_CASE("a failure is kept for the thread that had it", "[client]") {
  House house;
  Joined client(house);
  CHECK(ts_yield(client) == TS_ERR_NOT_ENTERED);
  std::string other = "unset";
  std::thread([&] { other = ts_last_error(); }).join();
  CHECK(other.empty());
  CHECK(errorSays("in no slice"));
}
