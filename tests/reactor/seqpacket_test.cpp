#include "reactor/seqpacket.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>

#include "reactor/fd_watch.h"
#include "support/loop.h"
#include "support/temp_dir.h"

using namespace ts;
using test::Loop;

namespace {

struct Pair {
  test::TempDir dir;
  std::string path = dir / "node.sock";
  kj::AutoCloseFd listener = listenSeqpacket(path, 0666);
  kj::AutoCloseFd client, server;
  Pair() {
    REQUIRE(connectSeqpacket(path, client) == 0);
    auto accepted = acceptSeqpacket(listener);
    REQUIRE(accepted);
    server = kj::mv(*accepted);
  }
};

}  // namespace

TEST_CASE("each message comes whole and with the sender's credentials", "[reactor]") {
  Pair p;
  CHECK(receivePacket(p.server, nullptr, 0).kind == Packet::Kind::WouldBlock);
  REQUIRE(sendPacket(p.client, "first", 5) == Sent::Yes);
  REQUIRE(sendPacket(p.client, "second", 6) == Sent::Yes);
  char buffer[64];
  Packet one = receivePacket(p.server, buffer, sizeof buffer);
  CHECK(std::string(buffer, one.size) == "first");
  REQUIRE(one.from);
  CHECK(one.from->pid == ::getpid());
  CHECK(one.from->uid == ::geteuid());
  Packet two = receivePacket(p.server, buffer, sizeof buffer);
  CHECK(std::string(buffer, two.size) == "second");
  CHECK_FALSE(two.truncated);
}

TEST_CASE("a message sent before the accept has its sender", "[reactor]") {
  test::TempDir dir;
  kj::AutoCloseFd listener = listenSeqpacket(dir / "node.sock", 0666);
  kj::AutoCloseFd client;
  REQUIRE(connectSeqpacket(dir / "node.sock", client) == 0);
  REQUIRE(sendPacket(client, "early", 5) == Sent::Yes);
  kj::AutoCloseFd server(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  int wanted = 0;
  socklen_t size = sizeof wanted;
  REQUIRE(::getsockopt(server, SOL_SOCKET, SO_PASSCRED, &wanted, &size) == 0);
  CHECK(wanted == 1);  // from the first moment on: no gap between accept and asking
  char buffer[64];
  Packet early = receivePacket(server, buffer, sizeof buffer);
  REQUIRE(early.from);
  CHECK(early.from->pid == ::getpid());
}

TEST_CASE("an empty message is not the end, and the end is the end", "[reactor]") {
  Pair p;
  char buffer[8];
  REQUIRE(sendPacket(p.client, "", 0) == Sent::Yes);
  Packet empty = receivePacket(p.server, buffer, sizeof buffer);
  CHECK(empty.kind == Packet::Kind::Message);
  CHECK(empty.size == 0);
  p.client = nullptr;
  CHECK(receivePacket(p.server, buffer, sizeof buffer).kind == Packet::Kind::Closed);
}

TEST_CASE("a message longer than the buffer says so", "[reactor]") {
  Pair p;
  char buffer[4];
  REQUIRE(sendPacket(p.client, "too long", 8) == Sent::Yes);
  Packet packet = receivePacket(p.server, buffer, sizeof buffer);
  CHECK(packet.truncated);
  CHECK(packet.size == 4);
}

TEST_CASE("descriptors travel with a message and are closed with it", "[reactor]") {
  Pair p;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0);
  kj::AutoCloseFd in(pipe[0]), out(pipe[1]);
  int send = out;
  REQUIRE(sendPacket(p.server, "fd", 2, &send, 1) == Sent::Yes);
  out = nullptr;
  char buffer[8];
  {
    Packet packet = receivePacket(p.client, buffer, sizeof buffer);
    REQUIRE(packet.fds.size() == 1);
    REQUIRE(::write(packet.fds[0], "x", 1) == 1);
    CHECK((::fcntl(packet.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(::read(in, buffer, sizeof buffer) == 1);
  CHECK(::read(in, buffer, sizeof buffer) == 0);  // the last writer is gone
}

TEST_CASE("sending to a closed peer is an answer, not a signal", "[reactor]") {
  Pair p;
  p.server = nullptr;
  CHECK(sendPacket(p.client, "x", 1) == Sent::Closed);
}

TEST_CASE("a reader that does not read makes the sender wait, never the thread", "[reactor]") {
  Pair p;
  char message[256] = {};
  Sent sent = Sent::Yes;
  for (int i = 0; i < 100'000 && sent == Sent::Yes; ++i) {
    sent = sendPacket(p.server, message, sizeof message);
  }
  CHECK(sent == Sent::WouldBlock);
}

TEST_CASE("a full backlog answers a connect at once", "[reactor]") {
  test::TempDir dir;
  std::string path = dir / "s";
  kj::AutoCloseFd listener = listenSeqpacket(path, 0666);
  REQUIRE(::listen(listener, 1) == 0);
  std::vector<kj::AutoCloseFd> clients;
  int error = 0;
  for (int i = 0; i < 10 && error == 0; ++i) {
    kj::AutoCloseFd client;
    error = connectSeqpacket(path, client);
    clients.push_back(kj::mv(client));
  }
  CHECK(error == EAGAIN);
  kj::AutoCloseFd patient;
  CHECK(connectSeqpacket(path, patient, std::chrono::milliseconds(1)) == EAGAIN);
}

namespace {

// From now on this process changes no mode: who tries is told so.
bool forbidChmod() {
  auto refuse = [](unsigned number) -> std::array<sock_filter, 2> {
    return {{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
             BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)}};
  };
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (unsigned number : {unsigned(SYS_chmod), unsigned(SYS_fchmod), unsigned(SYS_fchmodat)}) {
    for (auto step : refuse(number)) program.push_back(step);
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

// 0: made with that mode at once; 1: not; 77: no such filter here.
int listensAtOnce(const std::string& path, mode_t mode) {
  ::umask(0);
  if (!forbidChmod()) return 77;
  auto failure = kj::runCatchingExceptions([&] { listenSeqpacket(path, mode); });
  struct stat info {};
  bool right = ::stat(path.c_str(), &info) == 0 && (info.st_mode & 0777) == mode;
  return failure == nullptr && right ? 0 : 1;
}

}  // namespace

TEST_CASE("FF-F1: a socket never has another mode than the one that was asked for", "[reactor]") {
  test::TempDir dir;
  mode_t mode = GENERATE(0666, 0600);
  pid_t child = ::fork();
  if (child == 0) ::_exit(listensAtOnce(dir / "s", mode));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    WARN("no seccomp filters here");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a stale socket file is replaced, a live one and a plain file are not", "[reactor]") {
  test::TempDir dir;
  std::string path = dir / "s";
  { kj::AutoCloseFd gone = listenSeqpacket(path, 0600); }
  kj::AutoCloseFd live = listenSeqpacket(path, 0600);
  CHECK_THROWS_WITH(listenSeqpacket(path, 0600),
                    Catch::Contains("another daemon listens on " + path));
  std::string file = dir / "file";
  std::ofstream(file) << "x";
  CHECK_THROWS_WITH(listenSeqpacket(file, 0600), Catch::Contains("no socket"));
  CHECK_THROWS_WITH(listenSeqpacket(std::string(200, 'x'), 0600),
                    Catch::Contains("1 to 107 bytes"));
}

TEST_CASE("a server on the loop hears connections and messages through watches", "[reactor]") {
  Loop l;
  test::TempDir dir;
  std::string path = dir / "s";
  kj::AutoCloseFd listener = listenSeqpacket(path, 0600);
  kj::AutoCloseFd server;
  std::string heard;
  std::unique_ptr<FdWatch> messages;
  FdWatch accepting(l.port, listener, EV_READ, [&] {
    while (auto fd = acceptSeqpacket(listener)) server = kj::mv(*fd);
    messages = std::make_unique<FdWatch>(l.port, server, EV_READ, [&] {
      char buffer[16];
      Packet packet = receivePacket(server, buffer, sizeof buffer);
      heard.append(buffer, packet.size);
    });
  });
  kj::AutoCloseFd client;
  REQUIRE(connectSeqpacket(path, client) == 0);
  REQUIRE(sendPacket(client, "hello", 5) == Sent::Yes);
  l.pumpUntil([&] { return heard == "hello"; });
}
