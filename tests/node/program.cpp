#include "program.h"

#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace ts::test {
namespace {

// What follows runs in a fork of a process with threads: system calls only.
[[noreturn]] void relay(int control, const sockaddr_un& address) {
  int node = -1;
  char buffer[1024];
  for (;;) {
    pollfd fds[2] = {{control, POLLIN, 0}, {node, POLLIN, 0}};
    ::poll(fds, 2, -1);
    if (node >= 0 && fds[1].revents != 0) {
      ssize_t n = ::recv(node, buffer + 1, sizeof(buffer) - 1, MSG_DONTWAIT);
      buffer[0] = n > 0 ? 'm' : 'z';
      if (n <= 0) {
        ::close(node);
        node = -1;
      }
      (void)!::send(control, buffer, n > 0 ? std::size_t(n) + 1 : 1, 0);
    }
    if (fds[0].revents == 0) continue;
    ssize_t n = ::recv(control, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n <= 0) _exit(0);
    switch (buffer[0]) {
      case 'c':
        node = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (::connect(node, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0)
          _exit(9);
        break;
      case 'd':
        ::close(node);
        node = -1;
        break;
      case 'm':
        (void)!::send(node, buffer + 1, std::size_t(n) - 1, MSG_NOSIGNAL);
        break;
      case 'f':
        if (pid_t child = ::fork(); child == 0) {
          (void)!::send(node, buffer + 1, std::size_t(n) - 1, MSG_NOSIGNAL);
          _exit(0);
        } else {
          ::waitpid(child, nullptr, 0);
        }
        break;
      default:
        _exit(8);
    }
    (void)!::send(control, "a", 1, 0);  // done
  }
}

// The test's own connections and locks end with the test, not with us.
void keepOnly(int fd) {
  ::syscall(SYS_close_range, 3u, unsigned(fd) - 1, 0u);
  ::syscall(SYS_close_range, unsigned(fd) + 1, ~0u, 0u);
}

void copyText(char* to, std::size_t room, const std::string& text) {
  std::memcpy(to, text.data(), std::min(room - 1, text.size()));
}

}  // namespace

Program::Program(Loop& loop, std::string socket, std::optional<uid_t> uid) : loop_(loop) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  int pair[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
  KJ_SYSCALL(pid_ = ::fork());
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    keepOnly(pair[1]);
    if (uid && (::setgid(*uid) < 0 || ::setuid(*uid) < 0)) _exit(7);
    if (uid) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // changing the user cleared it
    relay(pair[1], address);
  }
  ::close(pair[1]);
  control_ = kj::AutoCloseFd(pair[0]);
  connect();
}

Program::~Program() {
  kill();
}

void Program::kill() {
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  reaped_ = true;
}

void Program::command(char what, const void* bytes, std::size_t size) {
  std::string text(1, what);
  text.append(static_cast<const char*>(bytes), size);
  KJ_SYSCALL(::send(control_, text.data(), text.size(), 0));
  // Acknowledgements come among messages from the node: look ahead for ours.
  auto isDone = [&] {
    char kind = 0;
    while (::recv(control_, &kind, 1, MSG_DONTWAIT | MSG_PEEK) == 1 && kind != 'a') {
      char buffer[sizeof(tsl_message) + 1];
      ssize_t n = ::recv(control_, buffer, sizeof(buffer), MSG_DONTWAIT);
      arrived_.emplace_back(buffer, std::size_t(n));
    }
    return kind == 'a' && ::recv(control_, &kind, 1, MSG_DONTWAIT) == 1;
  };
  if (!nodeSleeps_) return loop_.pumpUntil(isDone);
  while (!isDone()) {
    pollfd p{control_, POLLIN, 0};
    ::poll(&p, 1, -1);
  }
}

void Program::connect() {
  command('c', nullptr, 0);
  arrived_.clear();  // what came over an earlier connection
  last_ = 0;
}
void Program::disconnect() {
  command('d', nullptr, 0);
}
void Program::sendBytes(const std::string& bytes) {
  command('m', bytes.data(), bytes.size());
}

std::uint64_t Program::send(tsl_message m) {
  if (m.header.request == 0) m.header.request = ++last_;
  command('m', &m, sizeof(m));
  return m.header.request;
}

std::uint64_t Program::sendFromChild(tsl_message m) {
  m.header.request = ++last_;
  command('f', &m, sizeof(m));
  return m.header.request;
}

bool Program::hasMessage() {
  char buffer[sizeof(tsl_message) + 1];
  ssize_t n = ::recv(control_, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n > 0) arrived_.emplace_back(buffer, std::size_t(n));
  return !arrived_.empty();
}

tsl_message Program::receive() {
  loop_.pumpUntil([&] { return hasMessage(); });
  auto text = arrived_.front();
  arrived_.pop_front();
  REQUIRE(text.size() == sizeof(tsl_message) + 1);
  REQUIRE(text[0] == 'm');
  tsl_message m;
  std::memcpy(&m, text.data() + 1, sizeof(m));
  return m;
}

bool Program::isClosedByNode() {
  loop_.pumpUntil([&] { return hasMessage(); });
  return arrived_.front() == "z";
}

tsl_reply Program::answerTo(std::uint64_t request) {
  auto m = receive();
  REQUIRE(m.header.type == TSL_REPLY);
  REQUIRE(m.header.request == request);
  return m.u.reply;
}

tsl_reply Program::call(tsl_message m) {
  return answerTo(send(m));
}

tsl_reply Program::hello() {
  auto m = message(TSL_HELLO);
  m.u.hello = {TSL_VERSION, TSL_VERSION};
  return call(m);
}

tsl_reply Program::join(const std::string& group, const std::string& job,
                        const std::string& devices, const std::string& backend,
                        std::uint32_t gang) {
  if (!devices.empty()) send(claimMessage(devices));
  return call(joinMessage(group, job, backend, gang));
}

std::uint64_t Program::startAcquire(std::int64_t deadlineMs) {
  return send(acquireMessage(deadlineMs));
}
tsl_reply Program::acquire(std::int64_t deadlineMs) {
  return answerTo(startAcquire(deadlineMs));
}
tsl_reply Program::yield(std::uint64_t counter, std::uint32_t generation) {
  return call(yieldMessage(counter, generation));
}
tsl_reply Program::leave() {
  return call(message(TSL_LEAVE));
}

tsl_message message(tsl_type type) {
  tsl_message m{};
  m.header = {TSL_MAGIC, TSL_VERSION, std::uint16_t(type), 0};
  return m;
}

tsl_message joinMessage(const std::string& group, const std::string& job,
                        const std::string& backend, std::uint32_t gang) {
  auto m = message(TSL_JOIN);
  copyText(m.u.join.group, sizeof(m.u.join.group), group);
  copyText(m.u.join.job, sizeof(m.u.join.job), job);
  copyText(m.u.join.backend, sizeof(m.u.join.backend), backend);
  m.u.join.gang = gang;
  return m;
}

tsl_message claimMessage(const std::string& devices) {
  auto m = message(TSL_CLAIM);
  copyText(m.u.claim.devices, sizeof(m.u.claim.devices), devices);
  return m;
}

tsl_message acquireMessage(std::int64_t deadlineMs) {
  auto m = message(TSL_ACQUIRE);
  m.u.acquire.deadline_ms = deadlineMs;
  copyText(m.u.acquire.phase, sizeof(m.u.acquire.phase), "train");
  return m;
}

tsl_message yieldMessage(std::uint64_t counter, std::uint32_t generation) {
  auto m = message(TSL_YIELD);
  m.u.yield.epoch_counter = counter;
  m.u.yield.epoch_generation = generation;
  return m;
}

tsl_message pidMessage(tsl_type type, pid_t pid) {
  auto m = message(type);
  m.u.pid.pid = pid;
  return m;
}

}  // namespace ts::test
