#include "reactor/seqpacket.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "reactor/stale_socket.h"

namespace ts {
namespace {

constexpr std::size_t kMaxFds = 16;

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KJ_REQUIRE(!path.empty() && path.size() < sizeof address.sun_path,
             "a socket's path has 1 to 107 bytes", path.c_str(), path.size());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Credentials are asked for before anybody can connect: the kernel gives an accepted socket the
// listener's wish, and a message sent before the wish was known would come from pid 0.
kj::AutoCloseFd newSocket() {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd owned(fd);
  wantCredentials(fd);
  return owned;
}

// A blocking connect() waits for room in the backlog as long as a send would.
void beginPatience(int fd, std::chrono::microseconds patience) {
  timeval limit{time_t(patience.count() / 1'000'000), suseconds_t(patience.count() % 1'000'000)};
  KJ_SYSCALL(::fcntl(fd, F_SETFL, 0));
  KJ_SYSCALL(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
}

void takeControl(msghdr& message, Packet& packet) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_CREDENTIALS) {
      ucred who{};
      std::memcpy(&who, CMSG_DATA(c), sizeof who);
      packet.from = Credentials{who.pid, who.uid, who.gid};
    } else if (c->cmsg_type == SCM_RIGHTS) {
      std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        packet.fds.emplace_back(fd);
      }
    }
  }
}

}  // namespace

void wantCredentials(int fd) {
  int on = 1;
  KJ_SYSCALL(::setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}

kj::AutoCloseFd listenSeqpacket(const std::string& path, mode_t mode) {
  sockaddr_un address = addressOf(path);
  removeStaleSocket(path, SOCK_SEQPACKET);
  kj::AutoCloseFd fd = newSocket();
  // The mode is that from the start: nobody connects who may not, and nothing is left to change.
  mode_t before = ::umask(0777 & ~mode);
  int rc = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  int error = errno;
  ::umask(before);
  if (rc != 0) KJ_FAIL_SYSCALL("bind", error, path.c_str());
  KJ_SYSCALL(::listen(fd, SOMAXCONN), path.c_str());
  return fd;
}

std::optional<kj::AutoCloseFd> acceptSeqpacket(int listener) {
  while (true) {
    int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) return kj::AutoCloseFd(fd);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR && errno != ECONNABORTED) KJ_FAIL_SYSCALL("accept4", errno);
  }
}

int connectSeqpacket(const std::string& path, kj::AutoCloseFd& out,
                     std::chrono::microseconds patience) {
  sockaddr_un address = addressOf(path);
  kj::AutoCloseFd fd = newSocket();
  if (patience.count() > 0) beginPatience(fd, patience);
  int rc;
  do {
    rc = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return errno;
  KJ_SYSCALL(::fcntl(fd, F_SETFL, O_NONBLOCK));
  out = kj::mv(fd);
  return 0;
}

Packet receivePacket(int socket, void* buffer, std::size_t size) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kMaxFds * sizeof(int))];
  iovec to{buffer, size};
  msghdr message{};
  message.msg_iov = &to;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  Packet packet;
  ssize_t n;
  do {
    n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    bool later = errno == EAGAIN || errno == EWOULDBLOCK;
    packet.kind = later ? Packet::Kind::WouldBlock : Packet::Kind::Closed;
    return packet;
  }
  takeControl(message, packet);
  packet.size = std::size_t(n);
  packet.truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  bool end = n == 0 && !packet.from && packet.fds.empty();
  packet.kind = end ? Packet::Kind::Closed : Packet::Kind::Message;
  return packet;
}

Sent sendPacket(int socket, const void* bytes, std::size_t size, const int* fds,
                std::size_t fdCount) {
  KJ_REQUIRE(fdCount <= kMaxFds, "too many descriptors for one message", fdCount);
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec from{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &from;
  message.msg_iovlen = 1;
  if (fdCount > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fdCount * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fdCount * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, fdCount * sizeof(int));
  }
  ssize_t n;
  do {
    n = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return Sent::Yes;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::WouldBlock : Sent::Closed;
}

}  // namespace ts
