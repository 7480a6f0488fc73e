#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "reactor/pidfd.h"
#include "reactor/signals.h"
#include "support/loop.h"

using namespace ts;
using test::Loop;

namespace {

// A child that does nothing until it is killed.
pid_t startIdle() {
  pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  return child;
}

}  // namespace

TEST_CASE("the end of a process is heard through its pidfd", "[reactor]") {
  Loop l;
  pid_t child = startIdle();
  Pidfd pidfd = openPidfd(child);
  REQUIRE(pidfd.ok());
  auto ended = whenExits(l.port, pidfd.fd);
  CHECK_FALSE(ended.poll(l.scope));
  CHECK_FALSE(hasExited(pidfd.fd));
  REQUIRE(signalPidfd(pidfd.fd, SIGKILL) == 0);
  ended.wait(l.scope);
  CHECK(hasExited(pidfd.fd));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(signalPidfd(pidfd.fd, 0) == ESRCH);
}

TEST_CASE("a pid of nobody and the id of a thread are told apart", "[reactor]") {
  CHECK(openPidfd(0x3fffffff).error == ESRCH);
  Pidfd byThread;
  std::thread([&] { byThread = openPidfd(pid_t(::gettid())); }).join();
  CHECK(byThread.error == EINVAL);
}

TEST_CASE("a signal is a promise, and one that came before is not lost", "[reactor]") {
  Loop l;
  Signal hangup(l.port, SIGHUP);
  auto next = hangup.next();
  CHECK_FALSE(next.poll(l.scope));
  ::raise(SIGHUP);
  next.wait(l.scope);
  ::raise(SIGHUP);
  l.scope.poll();
  hangup.next().wait(l.scope);
}
