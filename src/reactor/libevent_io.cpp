#include "reactor/libevent_io.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace ts {
namespace {

// The promise owns the event: fulfilled when libevent fires, deregistered when dropped.
class ReadyAdapter {
public:
  ReadyAdapter(kj::PromiseFulfiller<void>& fulfiller, event_base* base, int fd, short what)
      : fulfiller_(fulfiller), event_(event_new(base, fd, what, &ReadyAdapter::fired, this)) {
    KJ_REQUIRE(event_ != nullptr, "event_new failed", fd);
    KJ_REQUIRE(event_add(event_.get(), nullptr) == 0, "event_add failed", fd);
  }

private:
  static void fired(evutil_socket_t, short, void* self) {
    static_cast<ReadyAdapter*>(self)->fulfiller_.fulfill();
  }
  kj::PromiseFulfiller<void>& fulfiller_;
  OwnEvent event_;
};

class OwnedFd {
public:
  OwnedFd(int fd, kj::uint flags)
      : fd_(fd), owned_(flags & kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP) {
    if (!(flags & kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK)) {
      KJ_SYSCALL(fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK));
    }
    if (owned_ && !(flags & kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC)) {
      KJ_SYSCALL(fcntl(fd_, F_SETFD, FD_CLOEXEC));
    }
  }
  ~OwnedFd() {
    if (owned_) ::close(fd_);
  }
  KJ_DISALLOW_COPY(OwnedFd);
  int get() const { return fd_; }

private:
  int fd_;
  bool owned_;
};

class SocketStream final : public kj::AsyncIoStream {
public:
  SocketStream(LibeventPort& port, int fd, kj::uint flags) : port_(port), fd_(fd, flags) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    return readSome(static_cast<kj::byte*>(buffer), minBytes, maxBytes, 0);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return writeAll(kj::arrayPtr(static_cast<const kj::byte*>(buffer), size), nullptr);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    if (pieces.size() == 0) return kj::READY_NOW;
    return writeAll(pieces[0], pieces.slice(1, pieces.size()));
  }
  // Cap'n Proto's two-party network learns of a dead peer by reading EOF; nothing here needs more.
  kj::Promise<void> whenWriteDisconnected() override { return kj::NEVER_DONE; }

  void shutdownWrite() override { KJ_SYSCALL(::shutdown(fd_.get(), SHUT_WR)); }
  void abortRead() override { KJ_SYSCALL(::shutdown(fd_.get(), SHUT_RD)); }
  void getsockopt(int level, int option, void* value, kj::uint* length) override {
    socklen_t n = *length;
    KJ_SYSCALL(::getsockopt(fd_.get(), level, option, value, &n));
    *length = n;
  }
  void setsockopt(int level, int option, const void* value, kj::uint length) override {
    KJ_SYSCALL(::setsockopt(fd_.get(), level, option, value, length));
  }
  kj::Maybe<int> getFd() const override { return fd_.get(); }

private:
  kj::Promise<size_t> readSome(kj::byte* to, size_t min, size_t max, size_t done) {
    while (true) {
      ssize_t n;
      KJ_NONBLOCKING_SYSCALL(n = ::read(fd_.get(), to, max));
      if (n < 0) {  // would block
        return port_.whenReady(fd_.get(), EV_READ).then([this, to, min, max, done] {
          return readSome(to, min, max, done);
        });
      }
      if (n == 0) return done;  // EOF
      done += size_t(n);
      if (size_t(n) >= min) return done;
      to += n;
      min -= size_t(n);
      max -= size_t(n);
    }
  }

  kj::Promise<void> writeAll(kj::ArrayPtr<const kj::byte> first,
                             kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> rest) {
    while (true) {
      constexpr size_t kMaxIov = 64;
      iovec iov[kMaxIov];
      size_t count = 0;
      iov[count++] = {const_cast<kj::byte*>(first.begin()), first.size()};
      for (auto& piece : rest) {
        if (count == kMaxIov) break;
        iov[count++] = {const_cast<kj::byte*>(piece.begin()), piece.size()};
      }
      msghdr msg{};
      msg.msg_iov = iov;
      msg.msg_iovlen = count;
      ssize_t n;
      KJ_NONBLOCKING_SYSCALL(n = ::sendmsg(fd_.get(), &msg, MSG_NOSIGNAL));
      if (n < 0) {  // would block
        return port_.whenReady(fd_.get(), EV_WRITE).then([this, first, rest] {
          return writeAll(first, rest);
        });
      }
      size_t sent = size_t(n);
      while (sent >= first.size()) {
        sent -= first.size();
        if (rest.size() == 0) return kj::READY_NOW;
        first = rest[0];
        rest = rest.slice(1, rest.size());
      }
      first = first.slice(sent, first.size());
    }
  }

  LibeventPort& port_;
  OwnedFd fd_;
};

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
        return kj::Own<kj::AsyncIoStream>(kj::heap<SocketStream>(port_, owned.release(), kNewFd));
      }
      switch (errno) {
        case EINTR:
        case ENETDOWN:
        case EPROTO:
        case ECONNABORTED:
          continue;
        case EAGAIN:
          return port_.whenReady(fd_.get(), EV_READ).then([this] { return accept(); });
        default:
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

  static constexpr kj::uint kNewFd = kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                                     kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                     kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK;

private:
  LibeventPort& port_;
  kj::LowLevelAsyncIoProvider::NetworkFilter& filter_;
  OwnedFd fd_;
};

class LibeventIo final : public kj::LowLevelAsyncIoProvider {
public:
  explicit LibeventIo(LibeventPort& port) : port_(port) {}

  kj::Own<kj::AsyncInputStream> wrapInputFd(int fd, kj::uint flags) override {
    return kj::heap<SocketStream>(port_, fd, flags);
  }
  kj::Own<kj::AsyncOutputStream> wrapOutputFd(int, kj::uint) override {
    KJ_UNIMPLEMENTED("sockets only: sendmsg does not work on pipes");
  }
  kj::Own<kj::AsyncIoStream> wrapSocketFd(int fd, kj::uint flags) override {
    return kj::heap<SocketStream>(port_, fd, flags);
  }
  kj::Promise<kj::Own<kj::AsyncIoStream>> wrapConnectingSocketFd(int fd, const sockaddr* addr,
                                                                 kj::uint addrlen,
                                                                 kj::uint flags) override {
    auto stream = kj::heap<SocketStream>(port_, fd, flags);
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

// ---------------------------------------------------------------------------------------------

OwnEventBase newEventBase() {
  std::unique_ptr<event_config, decltype(&event_config_free)> config(event_config_new(),
                                                                     &event_config_free);
  KJ_REQUIRE(config != nullptr, "event_config_new failed");
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_PRECISE_TIMER);
  OwnEventBase base(event_base_new_with_config(config.get()));
  KJ_REQUIRE(base != nullptr, "event_base_new_with_config failed");
  return base;
}

LibeventPort::LibeventPort(event_base* base)
    : base_(base), clock_(kj::systemPreciseMonotonicClock()), timer_(clock_.now()) {
  int fd;
  KJ_SYSCALL(fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  wakeFd_ = kj::AutoCloseFd(fd);
  // The callbacks do nothing: their only job is to make event_base_loop() return.
  wakeEvent_.reset(event_new(
      base_, fd, EV_READ | EV_PERSIST, [](evutil_socket_t, short, void*) {}, nullptr));
  timerEvent_.reset(evtimer_new(
      base_, [](evutil_socket_t, short, void*) {}, nullptr));
  KJ_REQUIRE(wakeEvent_ != nullptr && timerEvent_ != nullptr, "event_new failed");
  KJ_REQUIRE(event_add(wakeEvent_.get(), nullptr) == 0, "event_add failed");
}

LibeventPort::~LibeventPort() noexcept(false) = default;

bool LibeventPort::wait() {
  constexpr uint64_t kMaxUs = 3600ull * 1000 * 1000;
  KJ_IF_MAYBE (us, timer_.timeoutToNextEvent(clock_.now(), kj::MICROSECONDS, kMaxUs)) {
    timeval tv{time_t(*us / 1000000), suseconds_t(*us % 1000000)};
    evtimer_add(timerEvent_.get(), &tv);
  }
  bool woken = turn(EVLOOP_ONCE);
  evtimer_del(timerEvent_.get());
  return woken;
}

bool LibeventPort::poll() {
  return turn(EVLOOP_NONBLOCK);
}

void LibeventPort::wake() const {
  uint64_t one = 1;
  // EAGAIN means the counter is saturated, i.e. a wake is pending already.
  KJ_NONBLOCKING_SYSCALL(::write(wakeFd_.get(), &one, sizeof(one)));
}

kj::Promise<void> LibeventPort::whenReady(int fd, short what) {
  return kj::newAdaptedPromise<void, ReadyAdapter>(base_, fd, what);
}

bool LibeventPort::turn(int flags) {
  KJ_ASSERT(event_base_loop(base_, flags) >= 0, "event_base_loop failed");
  timer_.advanceTo(clock_.now());
  return takeWake();
}

bool LibeventPort::takeWake() {
  uint64_t count = 0;
  ssize_t n;
  KJ_NONBLOCKING_SYSCALL(n = ::read(wakeFd_.get(), &count, sizeof(count)));
  return n > 0;
}

kj::Own<kj::LowLevelAsyncIoProvider> newLibeventIo(LibeventPort& port) {
  return kj::heap<LibeventIo>(port);
}

}  // namespace ts
