#include "reactor/libevent_io.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "reactor/fd_stream.h"

namespace ts {
namespace {

constexpr kj::uint kNewFd = kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                            kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                            kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK;

// A request must not wait for the acknowledgement of the one before. What is no TCP socket needs
// nothing.
void sendAtOnce(int fd) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof family;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0) return;
  if (family != AF_INET && family != AF_INET6) return;
  int on = 1;
  KJ_SYSCALL(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

kj::Own<FdStream> socketStream(LibeventPort& port, int fd, kj::uint flags) {
  auto stream = kj::heap<FdStream>(port, fd, flags);
  sendAtOnce(fd);
  return stream;
}

class Listener final : public kj::ConnectionReceiver {
public:
  Listener(LibeventPort& port, int fd, kj::LowLevelAsyncIoProvider::NetworkFilter& filter,
           kj::uint flags)
      : port_(port), filter_(filter), fd_(fd, flags) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> accept() override {
    while (true) {
      sockaddr_storage addr{};
      socklen_t len = sizeof(addr);
      int conn = ::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&addr), &len,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (conn >= 0) {
        kj::AutoCloseFd owned(conn);
        if (!filter_.shouldAllow(reinterpret_cast<sockaddr*>(&addr), len)) continue;
        return kj::Own<kj::AsyncIoStream>(socketStream(port_, owned.release(), kNewFd));
      }
      switch (errno) {
        case EINTR:
        case ENETDOWN:
        case EPROTO:
        case ECONNABORTED:
          continue;
        case EAGAIN:
          return port_.whenReady(fd_.get(), EV_READ).then([this] { return accept(); });
        default:  // also out of descriptors: who accepts knows whom to tell, and when to try again
          KJ_FAIL_SYSCALL("accept4", errno);
      }
    }
  }
  kj::uint getPort() override {
    sockaddr_storage addr{};
    socklen_t len = sizeof(addr);
    KJ_SYSCALL(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&addr), &len));
    if (addr.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in&>(addr).sin_port);
    if (addr.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6&>(addr).sin6_port);
    return 0;
  }

private:
  LibeventPort& port_;
  kj::LowLevelAsyncIoProvider::NetworkFilter& filter_;
  OwnedFd fd_;
};

class LibeventIo final : public kj::LowLevelAsyncIoProvider {
public:
  explicit LibeventIo(LibeventPort& port) : port_(port) {}

  kj::Own<kj::AsyncInputStream> wrapInputFd(int fd, kj::uint flags) override {
    return kj::heap<FdStream>(port_, fd, flags);
  }
  kj::Own<kj::AsyncOutputStream> wrapOutputFd(int fd, kj::uint flags) override {
    return kj::heap<FdStream>(port_, fd, flags);
  }
  kj::Own<kj::AsyncIoStream> wrapSocketFd(int fd, kj::uint flags) override {
    return socketStream(port_, fd, flags);
  }
  kj::Promise<kj::Own<kj::AsyncIoStream>> wrapConnectingSocketFd(int fd, const sockaddr* addr,
                                                                 kj::uint addrlen,
                                                                 kj::uint flags) override {
    auto stream = socketStream(port_, fd, flags);
    int rc;
    do {
      rc = ::connect(fd, addr, addrlen);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0) return kj::Own<kj::AsyncIoStream>(kj::mv(stream));
    if (errno != EINPROGRESS) KJ_FAIL_SYSCALL("connect", errno);
    return port_.whenReady(fd, EV_WRITE)
        .then([stream = kj::mv(stream)]() mutable -> kj::Own<kj::AsyncIoStream> {
          int error = 0;
          kj::uint len = sizeof(error);
          stream->getsockopt(SOL_SOCKET, SO_ERROR, &error, &len);
          if (error != 0) KJ_FAIL_SYSCALL("connect", error);
          return kj::mv(stream);
        });
  }
  kj::Own<kj::ConnectionReceiver> wrapListenSocketFd(int fd, NetworkFilter& filter,
                                                     kj::uint flags) override {
    return kj::heap<Listener>(port_, fd, filter, flags);
  }
  kj::Timer& getTimer() override { return port_.timer(); }

private:
  LibeventPort& port_;
};

}  // namespace

kj::Own<kj::LowLevelAsyncIoProvider> newLibeventIo(LibeventPort& port) {
  return kj::heap<LibeventIo>(port);
}

}  // namespace ts
