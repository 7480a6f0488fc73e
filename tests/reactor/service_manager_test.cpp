#include "reactor/service_manager.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "support/loop.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace std::chrono_literals;
using test::Loop;

namespace {

// systemd's end of the socket.
class Manager {
public:
  explicit Manager(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    auto length = socklen_t(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  }
  // What came next; "" if nothing has come.
  std::string hear() {
    std::array<char, 64> buffer;
    auto n = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return n < 0 ? "" : std::string(buffer.data(), std::size_t(n));
  }

private:
  kj::AutoCloseFd fd_;
};

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

}  // namespace

TEST_CASE("a daemon tells its manager that it is ready, alive and stopping", "[reactor]") {
  Loop l;
  test::TempDir dir;
  for (std::string place : {dir / "notify", "@timeslice-test-" + std::to_string(::getpid())}) {
    Manager systemd(place);
    ServiceManager manager({.socket = place, .watchdog = 2ms}, l.port.timer());
    CHECK(systemd.hear().empty());
    CHECK(manager.ready().empty());
    CHECK(systemd.hear() == "READY=1");
    for (int signs = 0; signs < 3; ++signs) {
      std::string heard;
      l.pumpUntil([&] { return !(heard = systemd.hear()).empty(); });
      CHECK(heard == "WATCHDOG=1");
    }
    manager.stopping();
    std::string heard;
    l.pumpUntil([&] { return (heard = systemd.hear()) == "STOPPING=1"; });
    l.pumpUntil([&] { return systemd.hear() == "WATCHDOG=1"; });  // a move may be under way
  }
}

TEST_CASE("a loop that stands still sends no sign of life", "[reactor]") {
  Loop l;
  test::TempDir dir;
  Manager systemd(dir / "notify");
  ServiceManager manager({.socket = dir / "notify", .watchdog = 2ms}, l.port.timer());
  manager.ready();
  CHECK(systemd.hear() == "READY=1");
  CHECK(systemd.hear() == "WATCHDOG=1");
  auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < 10ms) CHECK(systemd.hear().empty());
}

TEST_CASE("without a watchdog no sign of life is sent, without a manager nothing", "[reactor]") {
  Loop l;
  test::TempDir dir;
  Manager systemd(dir / "notify");
  ServiceManager quiet({.socket = dir / "notify"}, l.port.timer());
  CHECK(quiet.ready().empty());
  CHECK(systemd.hear() == "READY=1");
  l.scope.poll();
  CHECK(systemd.hear().empty());
  ServiceManager alone({}, l.port.timer());
  CHECK(alone.ready().empty());
  alone.stopping();
  CHECK(systemd.hear().empty());
}

TEST_CASE("FF-E1: signs of life go on when descriptors have run out", "[reactor]") {
  Loop l;
  test::TempDir dir;
  Manager systemd(dir / "notify");
  ServiceManager manager({.socket = dir / "notify", .watchdog = 2ms}, l.port.timer());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK(manager.ready().empty());
  CHECK(systemd.hear() == "READY=1");
  CHECK(systemd.hear() == "WATCHDOG=1");
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("a manager that cannot be told is named with the cause", "[reactor]") {
  Loop l;
  test::TempDir dir;
  auto why = [&](const std::string& place) {
    return ServiceManager({.socket = place}, l.port.timer()).ready();
  };
  CHECK(why(dir / "nobody") == "NOTIFY_SOCKET " + dir / "nobody" + ": No such file or directory");
  CHECK(why("relative") == "NOTIFY_SOCKET relative: Invalid argument");
  CHECK(why("/" + std::string(200, 'x')).find("Invalid argument") != std::string::npos);
}

TEST_CASE("what the manager wants to know is taken out of the environment", "[reactor]") {
  set("NOTIFY_SOCKET", "/run/systemd/notify");
  set("WATCHDOG_USEC", "60000000");
  set("WATCHDOG_PID", std::to_string(::getpid()));
  auto taken = takeServiceEnvironment();
  CHECK(taken.socket == "/run/systemd/notify");
  CHECK(taken.watchdog == 60s);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    CHECK(std::getenv(name) == nullptr);
  CHECK(takeServiceEnvironment().socket.empty());
}

TEST_CASE("a watchdog of another process or without a time is none", "[reactor]") {
  set("WATCHDOG_USEC", "60000000");
  set("WATCHDOG_PID", std::to_string(::getppid()));
  CHECK_FALSE(takeServiceEnvironment().watchdog);
  for (const char* odd : {"0", "-1", "soon", "5s", ""}) {
    set("WATCHDOG_USEC", odd);
    CHECK_FALSE(takeServiceEnvironment().watchdog);
  }
}
