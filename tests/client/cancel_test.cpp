#include <pthread.h>
#include <signal.h>

#include <thread>

#include "client/support.h"

using namespace ts::test;

TEST_CASE("a cancel from another thread ends a waiting acquire", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  ts_status cancelled = TS_ERR_INTERNAL;
  std::thread canceller([&] {
    house.node.waitFor(TSL_ACQUIRE);
    cancelled = ts_cancel(client);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_CANCELLED);
  canceller.join();
  CHECK(cancelled == TS_OK);
  const tsl_message cancel = house.node.waitFor(TSL_CANCEL);
  CHECK(cancel.u.cancel.target == house.node.waitFor(TSL_ACQUIRE).header.request);
  CHECK(cancel.header.request == cancel.u.cancel.target);  // see TSL_CANCEL
  CHECK(client.state().entered == 0);
}

TEST_CASE("a cancel with nothing to cancel is no error and cancels nothing later", "[client]") {
  House house;
  Joined client(house);
  CHECK(ts_cancel(client) == TS_OK);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(ts_cancel(client) == TS_OK);
  CHECK(ts_yield(client) == TS_OK);
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
}

TEST_CASE("P100: a grant that came before the cancel counts", "[client]") {
  House house;
  house.node.ignore(TSL_CANCEL);
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  ts_status cancelled = TS_ERR_INTERNAL;
  std::thread canceller([&] {
    house.node.waitFor(TSL_ACQUIRE);
    cancelled = ts_cancel(client);
    house.node.grant();
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  canceller.join();
  CHECK(cancelled == TS_OK);
  CHECK(ts_yield(client) == TS_OK);
}

TEST_CASE("a cancel that a hanging daemon does not answer ends all the same", "[client]") {
  House house;
  house.node.ignore(TSL_ACQUIRE);
  house.node.ignore(TSL_CANCEL);
  Joined client(house);
  ts_status cancelled = TS_ERR_INTERNAL;
  std::thread canceller([&] {
    house.node.waitFor(TSL_ACQUIRE);
    cancelled = ts_cancel(client);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_CANCELLED);
  canceller.join();
  CHECK(cancelled == TS_OK);
  house.node.waitClosed();
}

TEST_CASE("a cancel works while there is no daemon", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  ts_status cancelled = TS_ERR_INTERNAL;
  std::thread canceller([&] {
    house.node.waitFor(TSL_ACQUIRE);
    house.node.goAway();
    cancelled = ts_cancel(client);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_CANCELLED);
  canceller.join();
  CHECK(cancelled == TS_OK);
}

namespace {
ts_client* g_inHandler;
extern "C" void cancelInHandler(int) {
  static_cast<void>(!ts_cancel(g_inHandler));
}
}  // namespace

TEST_CASE("a cancel from a signal handler ends the acquire of the interrupted thread", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  g_inHandler = client;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = cancelInHandler;
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  const pthread_t waiting = ::pthread_self();
  std::thread sender([&] {
    house.node.waitFor(TSL_ACQUIRE);
    ::pthread_kill(waiting, SIGUSR1);
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_ERR_CANCELLED);
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

namespace {
extern "C" void doNothing(int) {}

bool sameHandlers(const std::vector<struct sigaction>& a, const std::vector<struct sigaction>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].sa_handler != b[i].sa_handler || a[i].sa_flags != b[i].sa_flags) return false;
  }
  return true;
}

std::vector<struct sigaction> handlers() {
  std::vector<struct sigaction> all(32);
  for (int i = 1; i < 32; ++i) ::sigaction(i, nullptr, &all[static_cast<std::size_t>(i)]);
  return all;
}
}  // namespace

TEST_CASE("handlers and masks of the program stay as they were", "[client]") {
  House house;
  sigset_t maskBefore, maskAfter;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &maskBefore);
  const auto before = handlers();
  {
    Joined client(house);
    REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
    house.node.closeAll();  // a write to it raises no SIGPIPE
    REQUIRE(ts_yield(client) == TS_OK);
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &maskAfter);
  CHECK(sameHandlers(before, handlers()));
  for (int i = 1; i < 32; ++i) CHECK(::sigismember(&maskBefore, i) == ::sigismember(&maskAfter, i));
}

TEST_CASE("a signal that only interrupts does not end an acquire", "[client]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  Joined client(house);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = doNothing;
  REQUIRE(::sigaction(SIGUSR2, &action, &before) == 0);
  const pthread_t waiting = ::pthread_self();
  std::thread sender([&] {
    house.node.waitFor(TSL_ACQUIRE);
    for (int i = 0; i < 20; ++i) ::pthread_kill(waiting, SIGUSR2);
    house.node.grant();
  });
  CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
  sender.join();
  ::sigaction(SIGUSR2, &before, nullptr);
}
