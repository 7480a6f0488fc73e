#include "bench_common/floor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "local/protocol.h"

namespace ts::bench {
namespace {

// About as long as an order is on the wire.
struct Packet {
  char kind;  // Y a yield, O an order, G the grant, o their answer
  char rest[159];
};

void sendTcp(int fd, char kind) {
  Packet packet{};
  packet.kind = kind;
  if (::send(fd, &packet, sizeof packet, MSG_NOSIGNAL) != sizeof packet) ::_exit(0);
}

Packet receiveTcp(int fd) {
  Packet packet;
  if (::recv(fd, &packet, sizeof packet, MSG_WAITALL) != sizeof packet) ::_exit(0);
  return packet;
}

void sendLocal(int fd, std::uint16_t type) {
  tsl_message message{};
  message.header.type = type;
  if (::send(fd, &message, sizeof message, MSG_NOSIGNAL) != sizeof message) ::_exit(0);
}

std::uint16_t receiveLocal(int fd) {
  tsl_message message;
  if (::recv(fd, &message, sizeof message, 0) != sizeof message) ::_exit(0);
  return message.header.type;
}

void noDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

class Readable {
public:
  void add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
  template <class F>
  void wait(F f) {
    epoll_event events[64];
    const int count = ::epoll_wait(poll_, events, 64, -1);
    for (int i = 0; i < count; ++i) f(events[i].data.fd);
  }

private:
  int poll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

sockaddr_un localAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

int listenLocal(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const sockaddr_un address = localAddress(path);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 8) != 0) {
    die("cannot listen on " + path);
  }
  return fd;
}

int listenLoopback(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd, 256) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    die("cannot listen on a loopback port");
  }
  return fd;
}

class Master {
public:
  Master(int listener, int nodes, std::vector<int> phases) : phases_(std::move(phases)) {
    for (int i = 0; i < nodes; ++i) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      noDelay(fd);
      nodes_.push_back(fd);
      readable_.add(fd);
    }
  }
  [[noreturn]] void run() {
    while (true) {
      readable_.wait([this](int fd) { take(receiveTcp(fd)); });
    }
  }

private:
  void take(const Packet& packet) {
    if (packet.kind == 'Y') {
      if (++yields_ < nodes_.size()) return;
      yields_ = 0;
      phase_ = 0;
    } else {
      if (--open_ > 0) return;
      if (++phase_ == phases_.size()) return;
    }
    sendPhase();
  }
  void sendPhase() {
    const bool last = phase_ + 1 == phases_.size();
    for (int fd : nodes_) {
      for (int i = 1; i < phases_[phase_]; ++i) sendTcp(fd, 'O');
      sendTcp(fd, last ? 'G' : 'O');
    }
    open_ = nodes_.size() * std::size_t(phases_[phase_]);
  }

  std::vector<int> phases_;
  std::vector<int> nodes_;
  Readable readable_;
  std::size_t yields_ = 0, phase_ = 0, open_ = 0;
};

class Node {
public:
  Node(int listener, const sockaddr_in& master) : listener_(listener) {
    master_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(master_, reinterpret_cast<const sockaddr*>(&master), sizeof master) != 0)
      ::_exit(1);
    noDelay(master_);
    readable_.add(master_);
    readable_.add(listener_);
  }
  [[noreturn]] void run() {
    while (true) {
      readable_.wait([this](int fd) { take(fd); });
    }
  }

private:
  void take(int fd) {
    if (fd == listener_) {
      readable_.add(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    } else if (fd == master_) {
      obey(receiveTcp(master_));
    } else if (receiveLocal(fd) == TSL_YIELD) {
      sendLocal(fd, TSL_REPLY);
      sendTcp(master_, 'Y');
    } else {
      waiting_ = fd;
      if (std::exchange(open_, false)) letIn();  // the first turn is free
    }
  }
  void obey(const Packet& packet) {
    if (packet.kind == 'G') letIn();
    sendTcp(master_, 'o');
  }
  void letIn() {
    open_ = waiting_ < 0;  // nobody waits: the turn is free
    if (!open_) sendLocal(std::exchange(waiting_, -1), TSL_REPLY);
  }

  int listener_;
  int master_;
  int waiting_ = -1;
  bool open_ = true;
  Readable readable_;
};

class RawTurns final : public Turns {
public:
  explicit RawTurns(const std::vector<std::string>& sockets) {
    for (const std::string& path : sockets) {
      const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
      const sockaddr_un address = localAddress(path);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        die("cannot connect to " + path);
      }
      fds_.push_back(fd);
    }
  }
  ~RawTurns() override {
    for (int fd : fds_) ::close(fd);
  }
  void ask() override { sendAll(TSL_ACQUIRE); }
  void untilHeld() override { receiveAll(); }
  void yield() override {
    sendAll(TSL_YIELD);
    receiveAll();
  }

private:
  void sendAll(std::uint16_t type) {
    for (int fd : fds_) sendLocal(fd, type);
  }
  void receiveAll() {
    for (int fd : fds_) receiveLocal(fd);
  }
  std::vector<int> fds_;
};

}  // namespace

Floor::Floor(int nodes, std::vector<int> messagesInPhase) {
  sockaddr_in address;
  const int listener = listenLoopback(address);
  for (int i = 0; i < nodes; ++i) {
    sockets_.push_back(dir_ / ("n" + std::to_string(i) + ".sock"));
    const int local = listenLocal(sockets_.back());
    nodes_.emplace_back([&] { Node(local, address).run(); });
    ::close(local);
  }
  master_ = Process([&] { Master(listener, nodes, messagesInPhase).run(); });
  ::close(listener);
}

std::unique_ptr<Turns> Floor::turns() const {
  return std::make_unique<RawTurns>(sockets_);
}

}  // namespace ts::bench
