#include "bench_restart/raw_return.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "bench_common/figures.h"
#include "bench_common/process.h"

namespace ts::bench {
namespace {

constexpr int kGreeting = 256;  // with a nonce and a credential, each way

void sendBytes(int fd, int count) {
  const std::string bytes(std::size_t(count), 'x');
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != count) ::_exit(1);
}

void receiveBytes(int fd, int count) {
  std::string bytes(std::size_t(count), '\0');
  if (::recv(fd, bytes.data(), bytes.size(), MSG_WAITALL) != count) ::_exit(1);
}

class Listener {
public:
  Listener() {
    socklen_t length = sizeof address_;
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* at = reinterpret_cast<sockaddr*>(&address_);
    if (::bind(fd_, at, length) != 0 || ::listen(fd_, SOMAXCONN) != 0 ||
        ::getsockname(fd_, at, &length) != 0)
      die("cannot listen on a loopback port");
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_; }
  int connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0)
      ::_exit(1);
    return fd;
  }

private:
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

// One process for all peers, as the master is.
class Door {
public:
  Door(int listener, int reportBytes) : listener_(listener), reportBytes_(reportBytes) {
    watch(listener_);
  }
  void letIn(int peers) {
    while (in_ < peers) {
      epoll_event events[64];
      const int count = ::epoll_wait(poll_, events, 64, -1);
      for (int i = 0; i < count; ++i) take(events[i].data.fd);
    }
  }

private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
  void take(int fd) {
    if (fd == listener_) return watch(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    const bool greeted = greeted_[fd];
    receiveBytes(fd, greeted ? reportBytes_ : kGreeting);
    sendBytes(fd, kGreeting);
    greeted_[fd] = true;
    in_ += greeted ? 1 : 0;
  }

  int listener_, reportBytes_, in_ = 0;
  std::map<int, bool> greeted_;
  const int poll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace

double rawReturn(int peers, int reportBytes) {
  Listener listener;
  int gate[2], done[2];
  if (::pipe2(gate, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) die("no pipe");
  std::vector<Process> processes;
  for (int i = 0; i < peers; ++i) {
    processes.emplace_back([&] {
      char byte;
      ::close(gate[1]);
      if (::read(gate[0], &byte, 1) != 0) ::_exit(1);  // its end: all at once
      const int fd = listener.connect();
      sendBytes(fd, kGreeting);
      receiveBytes(fd, kGreeting);
      sendBytes(fd, reportBytes);
      receiveBytes(fd, kGreeting);
      ::pause();
    });
  }
  const Process door([&] {
    ::close(gate[1]);
    Door(listener.fd(), reportBytes).letIn(peers);
    if (::write(done[1], "", 1) != 1) ::_exit(1);
    ::pause();
  });
  const std::int64_t began = nowNs();
  ::close(gate[1]);
  untilReadable(done[0], "the return of " + std::to_string(peers) + " raw sockets");
  const double took = double(nowNs() - began) / 1e6;
  for (int fd : {gate[0], done[0], done[1]}) ::close(fd);
  return took;
}

}  // namespace ts::bench
