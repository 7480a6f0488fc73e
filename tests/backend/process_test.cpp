#include "backend/process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "support/child.h"

using namespace ts;

namespace {

// A thread of this process that waits until it is let go.
class Idle {
public:
  Idle() : tid_(start()) {}
  ~Idle() {
    stop_.set_value();
    thread_.join();
  }
  pid_t tid() const { return tid_; }

private:
  pid_t start() {
    std::promise<pid_t> tid;
    std::future<pid_t> known = tid.get_future();
    thread_ = std::thread([tid = std::move(tid), stop = stop_.get_future()]() mutable {
      tid.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
      stop.wait();
    });
    return known.get();
  }
  std::promise<void> stop_;
  std::thread thread_;
  pid_t tid_;
};

}  // namespace

TEST_CASE("a living process is a leader", "[backend]") {
  test::Child child;
  CHECK(lookAt(child.pid()).kind == ProcessKind::Leader);
}

TEST_CASE("FF-A7: a thread is not taken for its process, and the refusal names the process",
          "[backend]") {
  Idle idle;
  ProcessLook look = lookAt(idle.tid());
  CHECK(look.kind == ProcessKind::Thread);
  CHECK(look.leader == ::getpid());
  BackendOutcome outcome = refuse(look, idle.tid());
  CHECK(outcome.code == BackendOutcome::Code::NotAProcess);
  CHECK_THAT(outcome.detail,
             Catch::Contains(std::to_string(idle.tid()) + " is a thread of process " +
                             std::to_string(::getpid())));
}

TEST_CASE("FF-A7: numbers that are nobody's are gone or forbidden", "[backend]") {
  for (pid_t pid : {0, 1, -1, ::getpid()}) CHECK(lookAt(pid).kind == ProcessKind::Forbidden);
  CHECK(lookAt(std::numeric_limits<pid_t>::max()).kind == ProcessKind::Gone);
}

TEST_CASE("a zombie is gone", "[backend]") {
  test::Child child;
  child.killUnreaped();
  CHECK(lookAt(child.pid()).kind == ProcessKind::Gone);
}

TEST_CASE("who is meant by a pidfd is told by it, also when the number is another's", "[backend]") {
  test::Child child, other;
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0));
  REQUIRE(pidfd >= 0);
  CHECK(lookAt(Target{child.pid(), pidfd}).kind == ProcessKind::Leader);
  child.killUnreaped();
  CHECK(lookAt(Target{other.pid(), pidfd}).kind == ProcessKind::Gone);
  ::close(pidfd);
}
