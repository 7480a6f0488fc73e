#include <sys/socket.h>
#include <sys/syscall.h>

#include <kj/debug.h>

#include <catch2/catch.hpp>
#include <thread>

#include "reactor/fd_watch.h"
#include "support/loop.h"

using namespace ts;
using test::Loop;

namespace {

int watched(Loop& l) {
  return event_base_get_num_events(l.base.get(), EVENT_BASE_COUNT_ADDED);
}

struct SocketPair {
  SocketPair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    a = kj::AutoCloseFd(fds[0]);
    b = kj::AutoCloseFd(fds[1]);
  }
  kj::AutoCloseFd a, b;
};

}  // namespace

TEST_CASE("a timer fires on the loop, not before its time", "[reactor]") {
  Loop l;
  auto due = l.port.timer().now() + 3 * kj::MILLISECONDS;
  l.port.timer().atTime(due).wait(l.scope);
  CHECK(l.port.timer().now() >= due);
}

TEST_CASE("an earlier timer set later fires first, and a dropped one does not keep others back",
          "[reactor]") {
  Loop l;
  std::string order;
  auto late = l.port.timer().afterDelay(6 * kj::MILLISECONDS).then([&] { order += "late "; });
  {
    auto dropped = l.port.timer().afterDelay(1 * kj::MILLISECONDS).then([&] { order += "never "; });
    CHECK_FALSE(dropped.poll(l.scope));
  }
  auto soon = l.port.timer().afterDelay(2 * kj::MILLISECONDS).then([&] { order += "soon "; });
  soon.wait(l.scope);
  late.wait(l.scope);
  CHECK(order == "soon late ");
}

TEST_CASE("a timer that was dropped wakes nobody", "[reactor]") {
  Loop l;
  SocketPair pair;
  auto soon = l.port.timer().afterDelay(20 * kj::MILLISECONDS);
  REQUIRE(::write(pair.b, "x", 1) == 1);
  l.port.whenReady(pair.a, EV_READ).wait(l.scope);  // the loop has looked, and armed it
  soon = kj::Promise<void>(kj::NEVER_DONE);
  auto begin = l.port.timer().now();
  auto late = l.port.timer().afterDelay(60 * kj::MILLISECONDS);
  l.port.wait();  // one sleep
  CHECK(l.port.timer().now() - begin >= 60 * kj::MILLISECONDS);
}

TEST_CASE("another thread can post work onto the loop, again and again", "[reactor]") {
  Loop l;
  const kj::Executor& executor = kj::getCurrentThreadExecutor();
  for (int i = 0; i < 100; ++i) {
    auto paf = kj::newPromiseAndFulfiller<int>();
    std::thread t([&] { executor.executeSync([&] { paf.fulfiller->fulfill(int(i)); }); });
    CHECK(paf.promise.wait(l.scope) == i);
    t.join();
  }
}

TEST_CASE("dropping a readiness promise deregisters the descriptor", "[reactor]") {
  Loop l;
  SocketPair pair;
  int before = watched(l);
  {
    auto ready = l.port.whenReady(pair.a, EV_READ);
    CHECK(watched(l) == before + 1);
  }
  CHECK(watched(l) == before);
}

TEST_CASE("a watch calls back for every message until it is paused", "[reactor]") {
  Loop l;
  SocketPair pair;
  int seen = 0;
  FdWatch watch(l.port, pair.a, EV_READ, [&] {
    char byte;
    if (::read(pair.a, &byte, 1) == 1) ++seen;
  });
  for (int i = 1; i <= 3; ++i) {
    REQUIRE(::write(pair.b, "x", 1) == 1);
    l.pumpUntil([&] { return seen == i; });
  }
  watch.pause();
  REQUIRE(::write(pair.b, "x", 1) == 1);
  auto readable = l.port.whenReady(pair.a, EV_READ);
  readable.wait(l.scope);
  CHECK(seen == 3);
  watch.resume();
  l.pumpUntil([&] { return seen == 4; });
}

TEST_CASE("a watch may be destroyed by its own callback", "[reactor]") {
  Loop l;
  SocketPair pair;
  std::unique_ptr<FdWatch> watch;
  bool fired = false;
  watch = std::make_unique<FdWatch>(l.port, pair.a, EV_READ, [&] {
    fired = true;
    watch.reset();
  });
  int before = watched(l);
  REQUIRE(::write(pair.b, "x", 1) == 1);
  l.pumpUntil([&] { return fired; });
  CHECK(watched(l) == before - 1);
}

TEST_CASE("what a watch's callback throws leaves the loop, not through libevent", "[reactor]") {
  Loop l;
  SocketPair pair;
  FdWatch watch(l.port, pair.a, EV_READ, [] { KJ_FAIL_REQUIRE("the callback failed"); });
  REQUIRE(::write(pair.b, "x", 1) == 1);
  auto never = kj::Promise<void>(kj::NEVER_DONE);
  auto failure = kj::runCatchingExceptions([&] { never.wait(l.scope); });
  KJ_IF_MAYBE (e, failure) {
    CHECK(std::string(e->getDescription().cStr()).find("the callback failed") != std::string::npos);
  } else {
    FAIL("nothing was thrown");
  }
  // The loop goes on for those who clean up.
  watch.pause();
  l.port.timer().afterDelay(1 * kj::MILLISECONDS).wait(l.scope);
}
