#include <atomic>
#include <thread>
#include <vector>

#include "client/support.h"

using namespace ts::test;

namespace {

template <class F>
void onThreads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("FF-E4: 32 threads share one handle", "[client]") {
  House house;
  Joined client(house);
  std::atomic<int> failures{0};
  onThreads(32, [&](int) {
    for (int round = 0; round < 50; ++round) {
      if (ts_acquire(client, nullptr, nullptr) != TS_OK) ++failures;
      static_cast<void>(ts_should_yield(client));
      if (ts_yield(client) != TS_OK) ++failures;
    }
  });
  CHECK(failures == 0);
  CHECK(client.state().entered == 0);
  CHECK(house.node.count(TSL_ACQUIRE) == house.node.count(TSL_YIELD));
}

TEST_CASE("all threads that wait are granted by one answer", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::atomic<int> granted{0};
  std::thread daemon([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.grant();
  });
  onThreads(8, [&](int) {
    if (ts_acquire(client, nullptr, nullptr) == TS_OK) ++granted;
  });
  daemon.join();
  CHECK(granted == 8);
  CHECK(client.state().depth == 8);
  CHECK(house.node.count(TSL_ACQUIRE) == 1);
}

TEST_CASE("each thread has its own deadline", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::atomic<int> patient{-1}, hasty{-1};
  std::thread first([&] {
    const ts_acquire_options options = within(20);
    hasty = ts_acquire(client, &options, nullptr);
  });
  house.node.waitFor(TSL_ACQUIRE);
  std::thread second([&] { patient = ts_acquire(client, nullptr, nullptr); });
  first.join();
  CHECK(hasty == TS_ERR_TIMED_OUT);
  house.node.waitFor(TSL_ACQUIRE, 2);  // on behalf of the one who still waits
  house.node.grant();
  second.join();
  CHECK(patient == TS_OK);
  CHECK(client.state().depth == 1);
}

TEST_CASE("a hasty thread does not cost a patient one its connection", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::atomic<int> patient{-1};
  std::thread first([&] { patient = ts_acquire(client, nullptr, nullptr); });
  house.node.waitFor(TSL_ACQUIRE);
  SECTION("with a deadline of its own") {
    const ts_acquire_options options = within(20);
    CHECK(ts_acquire(client, &options, nullptr) == TS_ERR_TIMED_OUT);
    CHECK(errorSays("another thread of the process waits on"));
  }
  SECTION("with a try") {
    CHECK(ts_try_acquire(client, nullptr) == TS_ERR_BUSY);
    CHECK(errorSays("another thread of this process waits"));
  }
  house.node.grant();
  first.join();
  CHECK(patient == TS_OK);
  CHECK(client.state().depth == 1);
  CHECK(house.node.count(TSL_ACQUIRE) == 1);
  CHECK(house.node.count(TSL_HELLO) == 1);
}

TEST_CASE("a loop on one thread takes no wake-up from another that waits", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::atomic<int> patient{-1}, others{0};
  std::thread reader([&] { patient = ts_acquire(client, nullptr, nullptr); });
  house.node.waitFor(TSL_ACQUIRE);
  REQUIRE(ts_acquire_start(client, nullptr) == TS_OK);
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> asks{false};
    std::thread hasty([&] {
      const ts_acquire_options options = within(1);
      asks = true;
      if (ts_acquire(client, &options, nullptr) != TS_ERR_TIMED_OUT) ++others;
    });
    while (!asks) std::this_thread::yield();
    for (int i = 0; i < round; ++i) others += ts_acquire_finish(client, nullptr) != TS_ERR_BUSY;
    hasty.join();  // the reader must have learned of its deadline
  }
  CHECK(others == 0);
  house.node.grant();
  reader.join();
  CHECK(patient == TS_OK);
}

TEST_CASE("handles of several groups do not disturb each other", "[client]") {
  House house;
  std::atomic<int> failures{0};
  onThreads(32, [&](int i) {
    const std::string group = "group-" + std::to_string(i);
    ts_join_options options = house.options();
    options.group = group.c_str();
    ts_client* client = nullptr;
    if (ts_join(&options, &client) != TS_OK) {
      ++failures;
      return;
    }
    for (int round = 0; round < 20; ++round) {
      if (ts_acquire(client, nullptr, nullptr) != TS_OK) ++failures;
      if (ts_yield(client) != TS_OK) ++failures;
    }
    ts_leave(client);
  });
  CHECK(failures == 0);
  CHECK(house.node.count(TSL_LEAVE) == 32);
}

TEST_CASE("FF-D17, FF-E4: threads keep their turns while connections break under them",
          "[client]") {
  House house;
  Joined client(house);
  std::atomic<int> failures{0};
  std::atomic<bool> over{false};
  std::thread breaker([&] {
    while (!over) {
      const std::size_t before = house.node.count(TSL_JOIN);
      house.node.closeAll();
      while (!over && house.node.count(TSL_JOIN) == before) std::this_thread::yield();
    }
  });
  onThreads(8, [&](int) {
    for (int round = 0; round < 20; ++round) {
      if (ts_acquire(client, nullptr, nullptr) != TS_OK) ++failures;
      if (ts_yield(client) != TS_OK) ++failures;
    }
  });
  over = true;
  breaker.join();
  CHECK(failures == 0);
}

TEST_CASE("cancels from everywhere leave nobody waiting", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  std::atomic<int> waiting{8}, others{0};
  std::thread canceller([&] {
    while (waiting > 0) static_cast<void>(!ts_cancel(client));
  });
  onThreads(8, [&](int) {
    for (int round = 0; round < 10; ++round) {
      if (ts_acquire(client, nullptr, nullptr) != TS_ERR_CANCELLED) ++others;
    }
    --waiting;
  });
  canceller.join();
  CHECK(others == 0);
  CHECK(client.state().depth == 0);
  CHECK(house.node.count(TSL_HELLO) == 1);  // no cancel cost the connection
}

TEST_CASE("a cancel that is overtaken by another thread's message breaks nothing", "[client]") {
  House house;
  Joined client(house);
  std::atomic<bool> over{false};
  std::atomic<int> failures{0};
  std::thread cancellers([&] {
    onThreads(4, [&](int) {
      while (!over) static_cast<void>(!ts_cancel(client));
    });
  });
  onThreads(2, [&](int) {
    for (int round = 0; round < 1000; ++round) {
      const ts_status status = ts_acquire(client, nullptr, nullptr);
      if (status == TS_ERR_CANCELLED) continue;
      if (status != TS_OK || ts_yield(client) != TS_OK) ++failures;
    }
  });
  over = true;
  cancellers.join();
  CHECK(failures == 0);
  CHECK(house.node.count(TSL_HELLO) == 1);
}
