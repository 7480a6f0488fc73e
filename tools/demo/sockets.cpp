#include "sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "peers.h"

namespace demo {
namespace {

constexpr auto kBetweenTries = std::chrono::milliseconds(20);

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) throw PeerError("address '" + address + "': need HOST:PORT");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(),
                                &hints, &found);
  if (error != 0) throw PeerError("address '" + address + "': " + gai_strerror(error));
  return {found, &freeaddrinfo};
}

[[noreturn]] void fail(const std::string& doing, int error) {
  throw PeerError(doing + ": " + std::strerror(error));
}

int newSocket(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket", errno);
  return fd;
}

void sendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

int listenAt(const std::string& address) {
  const Addresses where = resolve(address);
  const int fd = newSocket(*where);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, 16) == 0) return fd;
  const int error = errno;
  close(fd);
  fail("listen at " + address, error);
}

int acceptFrom(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) fail("accept", errno);
  sendAtOnce(fd);
  return fd;
}

bool readableBy(int fd, std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    pollfd asked{fd, POLLIN, 0};
    const int ready = poll(&asked, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) fail("poll", errno);
  }
}

int connectTo(const std::string& address) {
  const Addresses where = resolve(address);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const int fd = newSocket(*where);
    if (connect(fd, where->ai_addr, where->ai_addrlen) == 0) {
      sendAtOnce(fd);
      return fd;
    }
    const int error = errno;
    close(fd);
    if (std::chrono::steady_clock::now() > end) fail("rank 0 at " + address, error);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void sendAll(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail("a rank is gone: send", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void receiveAll(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("a rank is gone: receive", errno);
    if (got == 0) throw PeerError("a rank is gone: it closed the connection");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace demo
