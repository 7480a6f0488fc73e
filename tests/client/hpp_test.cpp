#include <timeslice/timeslice.hpp>

#include "client/support.h"

using namespace ts::test;

namespace {
ts::JoinOptions optionsOf(const House& house) {
  ts::JoinOptions options;
  options.socket = house.socket;
  options.group = "rl";
  return options;
}
}  // namespace

TEST_CASE("a slice lasts as long as its object", "[client]") {
  House house;
  ts::Client client(optionsOf(house));
  {
    ts::Slice outer(client, "train");
    CHECK(outer.grant().epoch == 1);
    ts::Slice inner(client);
    CHECK(client.state().depth == 2);
    CHECK_FALSE(client.shouldYield());
  }
  CHECK(client.state().entered == 0);
  CHECK(std::string(house.node.waitFor(TSL_ACQUIRE).u.acquire.phase) == "train");
  house.node.waitFor(TSL_YIELD);
}

TEST_CASE("a slice can end before its object, once", "[client]") {
  House house;
  ts::Client client(optionsOf(house));
  {
    ts::Slice slice(client);
    slice.yield();
    try {
      slice.yield();
      FAIL("it had yielded");
    } catch (const ts::Error& error) {
      CHECK(error.status() == TS_ERR_NOT_ENTERED);
    }
    ts::Slice moved(std::move(slice));
  }
  CHECK(house.node.count(TSL_YIELD) == 1);
}

TEST_CASE("a try is empty when somebody holds", "[client]") {
  House house;
  ts::Client client(optionsOf(house));
  house.node.hold(TSL_ACQUIRE);
  CHECK_FALSE(ts::Slice::tryNow(client).has_value());
  house.node.answer(TSL_ACQUIRE, TSL_OK);
  CHECK(ts::Slice::tryNow(client).has_value());
  CHECK(client.state().entered == 0);
}

TEST_CASE("a failure is thrown with its status and its sentence", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  ts::Client client(optionsOf(house));
  try {
    ts::Slice slice(client, "train", std::chrono::milliseconds(10));
    FAIL("nobody granted it");
  } catch (const ts::Error& error) {
    CHECK(error.status() == TS_ERR_TIMED_OUT);
    CHECK(std::string(error.what()).find("acquire in group 'rl': TIMED_OUT: ") == 0);
  }
}

TEST_CASE("outside, C++ runs unchanged", "[client]") {
  CleanEnvironment environment;
  ts::Client client;
  CHECK_FALSE(client.active());
  ts::Slice slice(client, "train");
  slice.yield();
}
