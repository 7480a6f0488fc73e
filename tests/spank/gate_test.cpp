// The gate, in a process of its own: what ends the wait, and with which sentence.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "support/fake_node.h"
#include "support/temp_dir.h"

extern "C" {
#include "client/link.h"
#include "exchange.h"
#include "gate.h"

struct tsp_plugin tsp_plugin;

void slurm_spank_log(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vprintf(format, args);
  va_end(args);
  std::printf("\n");
}
}

using namespace ts::test;
using Catch::Matchers::Contains;

namespace {

struct House {
  TempDir dir;
  std::string socket = dir / "node.sock";
  FakeNode node{socket};

  House() {
    std::snprintf(tsp_plugin.words.socket, sizeof tsp_plugin.words.socket, "%s", socket.c_str());
    tsp_plugin.words.timeout_ms = 50;
    tsp_plugin.words.gather_ms = 60000;
  }
};

constexpr int kOut = 3;

std::string readAll(int fd) {
  std::string all;
  char piece[512];
  for (ssize_t got; (got = ::read(fd, piece, sizeof piece)) > 0;) {
    all.append(piece, std::size_t(got));
  }
  return all;
}

[[noreturn]] void task(pid_t daemon, int descriptors) {
  rlimit few{rlim_t(kOut + 1 + descriptors), rlim_t(kOut + 1 + descriptors)};
  if (descriptors > 0) ::setrlimit(RLIMIT_NOFILE, &few);
  tsp_step step{};
  step.uid = ::geteuid();
  step.daemon = daemon;
  std::strcpy(step.name, "17.0");
  std::strcpy(step.wishes.text[TSP_GROUP], "rl");
  char error[TSP_WHY_BYTES] = "";
  bool passed = tsp_gate(&step, true, error);
  std::printf("%s%s", passed ? "passed" : "", error);
  std::fflush(nullptr);
  ::_exit(0);
}

// With as many `descriptors` left; 0: as many as usual.
std::string atGate(int descriptors = 0) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t parent = ::getpid();
  std::fflush(nullptr);
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], kOut);
    for (int fd = kOut + 1; fd < 1024; ++fd) ::close(fd);
    task(parent, descriptors);
  }
  ::close(ends[1]);
  auto said = readAll(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  return said;
}

}  // namespace

TEST_CASE("a turn that comes at once opens the gate without a word", "[spank]") {
  House house;
  CHECK(atGate() == "passed");
}

TEST_CASE("an answer that the turn is not free ends the wait, with its sentence", "[spank]") {
  House house;
  house.node.answer(TSL_ACQUIRE, TSL_BUSY, "job other holds");
  CHECK_THAT(atGate(), Contains("BUSY") && Contains("job other holds"));
}

TEST_CASE("a gate without descriptors to wait with says so", "[spank]") {
  House house;
  house.node.hold(TSL_ACQUIRE);
  CHECK_THAT(atGate(2), Contains("no descriptor is left in this process"));
}

TEST_CASE("a master may restart while the tasks of a step gather", "[spank]") {
  House house;
  CHECK(atGate() == "passed");
  CHECK(house.node.waitFor(TSL_JOIN).u.join.deadline_ms > 50000);
}

TEST_CASE("what broke a connection is named, and errno is the caller's", "[spank]") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  ::close(pair[1]);
  auto message = tsc_message(TSL_HELLO, 1);
  errno = ENOTTY;
  CHECK(tsc_send(pair[0], &message) == -EPIPE);
  CHECK(errno == ENOTTY);
  ::close(pair[0]);
}

TEST_CASE("a request that cannot be sent says why", "[spank]") {
  TempDir dir;
  auto path = dir / "node.sock";
  int listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  std::thread deaf([listener] {  // it greets, and hears nothing more
    int fd = ::accept(listener, nullptr, nullptr);
    tsl_message hello;
    ::recv(fd, &hello, sizeof hello, 0);
    ::shutdown(fd, SHUT_RD);
    auto reply = tsc_message(TSL_REPLY, hello.header.request);
    ::send(fd, &reply, sizeof reply, 0);
    ::recv(fd, &hello, sizeof hello, 0);
    ::close(fd);
  });
  auto ask = tsc_message(TSL_ACCOUNT, 0);
  tsp_answer answer;
  errno = ENOTTY;
  tsp_exchange(path.c_str(), 60000, nullptr, &ask, nullptr, &answer);
  deaf.join();
  ::close(listener);
  CHECK(std::string(answer.why) ==
        "the connection broke while sending to the node daemon at " + path + " (Broken pipe)");
}
