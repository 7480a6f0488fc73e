#include "reactor/stale_socket.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <vector>

#include "support/temp_dir.h"

using namespace ts;

namespace {

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

kj::AutoCloseFd newSocket(int type) {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return kj::AutoCloseFd(fd);
}

kj::AutoCloseFd listenAt(const std::string& path, int type, int backlog = 8) {
  auto fd = newSocket(type);
  auto address = addressOf(path);
  KJ_SYSCALL(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
  KJ_SYSCALL(::listen(fd, backlog));
  return fd;
}

// A full backlog: nobody accepts, and no more can connect.
std::vector<kj::AutoCloseFd> crowd(const std::string& path, int type) {
  std::vector<kj::AutoCloseFd> all;
  auto address = addressOf(path);
  for (;;) {
    all.push_back(newSocket(type));
    if (::connect(all.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return all;
  }
}

std::string failure(const std::string& path, int type) {
  std::string text;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { removeStaleSocket(path, type); }))
    text = e->getDescription().cStr();
  return text;
}

bool isThere(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

TEST_CASE("a socket that nobody listens on is removed", "[reactor]") {
  test::TempDir dir;
  std::string path = dir.path() + "/s";
  for (int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    listenAt(path, type) = nullptr;
    REQUIRE(isThere(path));
    CHECK(failure(path, type) == "");
    CHECK_FALSE(isThere(path));
    CHECK(failure(path, type) == "");
  }
}

TEST_CASE("a socket that somebody listens on stays, however busy they are", "[reactor]") {
  test::TempDir dir;
  std::string path = dir.path() + "/s";
  for (int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    auto listener = listenAt(path, type, 0);
    CHECK_THAT(failure(path, type), Catch::Contains("another daemon listens on " + path));
    auto waiting = crowd(path, type);
    CHECK_THAT(failure(path, type), Catch::Contains("another daemon listens on " + path));
    int other = type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM;
    CHECK_THAT(failure(path, other), Catch::Contains("another daemon listens on " + path));
    CHECK(isThere(path));
    ::unlink(path.c_str());
  }
}

TEST_CASE("what is no socket is named and stays", "[reactor]") {
  test::TempDir dir;
  std::string path = dir.path() + "/file";
  std::ofstream(path) << "mine";
  CHECK_THAT(failure(path, SOCK_STREAM), Catch::Contains("no socket"));
  CHECK(isThere(path));
}
