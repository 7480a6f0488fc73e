#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "reactor/fd_stream.h"
#include "support/loop.h"

using namespace ts;
using test::Loop;

namespace {

struct Connection {
  explicit Connection(Loop& l) {
    auto listener = l.address("127.0.0.1:0")->listen();
    auto connecting = l.address(kj::str("127.0.0.1:", listener->getPort()))->connect();
    server = listener->accept().wait(l.scope);
    client = connecting.wait(l.scope);
  }
  kj::Own<kj::AsyncIoStream> server, client;
};

void put(kj::AsyncOutputStream& to, Loop& l, const std::string& text) {
  to.write(text.data(), text.size()).wait(l.scope);
}

std::string take(kj::AsyncInputStream& from, Loop& l, size_t min, size_t max) {
  std::string text(max, '\0');
  text.resize(from.tryRead(text.data(), min, max).wait(l.scope));
  return text;
}

std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = char(i * 31 + (i >> 9));
  return text;
}

int descriptor(kj::AsyncIoStream& stream) {
  KJ_IF_MAYBE (fd, stream.getFd()) {
    return *fd;
  }
  return -1;
}

}  // namespace

TEST_CASE("messages written in one turn arrive in order, whatever the reader's pieces",
          "[reactor]") {
  Loop l;
  Connection c(l);
  put(*c.client, l, "one ");
  put(*c.client, l, "two ");
  put(*c.client, l, "three");
  CHECK(take(*c.server, l, 4, 4) == "one ");
  CHECK(take(*c.server, l, 1, 2) == "tw");
  CHECK(take(*c.server, l, 7, 7) == "o three");
}

TEST_CASE("a read that has to wait gets what comes", "[reactor]") {
  Loop l;
  Connection c(l);
  char buffer[8];
  auto reading = c.server->tryRead(buffer, 5, sizeof buffer);
  CHECK_FALSE(reading.poll(l.scope));
  put(*c.client, l, "he");
  CHECK_FALSE(reading.poll(l.scope));
  put(*c.client, l, "llo");
  CHECK(reading.wait(l.scope) == 5);
  CHECK(std::string(buffer, 5) == "hello");
}

TEST_CASE("small and large writes keep their order through a full socket", "[reactor]") {
  Loop l;
  Connection c(l);
  std::string small = pattern(1000), large = pattern(3 << 20);
  std::string all;
  auto write = [&](const std::string& text) {
    all += text;
    return c.client->write(text.data(), text.size());
  };
  // Nobody reads yet: the small ones fill the socket, then the stream's buffer, then wait.
  kj::Promise<void> writing = kj::READY_NOW;
  int written = 0;
  for (int i = 0; i < 200; ++i) {
    writing = writing.then([&, i] { return write(i % 50 == 25 ? large : small); }).then([&] {
      ++written;
    });
  }
  writing = writing.eagerlyEvaluate(nullptr);
  CHECK_FALSE(writing.poll(l.scope));
  std::string got(4 * (3 << 20) + 196 * 1000, '\0');
  auto reading = c.server->tryRead(got.data(), got.size(), got.size());
  CHECK(reading.wait(l.scope) == got.size());
  writing.wait(l.scope);
  CHECK(written == 200);
  CHECK(got == all);
}

TEST_CASE("pieces of a scattered write arrive as one", "[reactor]") {
  Loop l;
  Connection c(l);
  std::string first = "head ", empty, last = pattern(100'000);
  auto bytes = [](const std::string& s) {
    return kj::arrayPtr(reinterpret_cast<const kj::byte*>(s.data()), s.size());
  };
  kj::ArrayPtr<const kj::byte> pieces[] = {bytes(empty), bytes(first), bytes(empty), bytes(last)};
  auto writing = c.client->write(kj::arrayPtr(pieces, 4)).eagerlyEvaluate(nullptr);
  CHECK(take(*c.server, l, 100'005, 100'005) == first + last);
  writing.wait(l.scope);
}

TEST_CASE("the end of a stream is seen together with its last bytes", "[reactor]") {
  Loop l;
  Connection c(l);
  SECTION("closed by the peer") {
    char buffer[16];
    auto reading = c.server->tryRead(buffer, 16, 16);
    CHECK_FALSE(reading.poll(l.scope));
    put(*c.client, l, "bye");
    c.client = nullptr;
    CHECK(reading.wait(l.scope) == 3);
  }
  SECTION("half-closed, and the other direction still works") {
    put(*c.client, l, "bye");
    c.client->shutdownWrite();
    CHECK(take(*c.server, l, 16, 16) == "bye");
    put(*c.server, l, "answer");
    CHECK(take(*c.client, l, 6, 16) == "answer");
  }
  SECTION("half-closed behind a full socket") {
    std::string much = pattern(60'000);
    int size = 4096;
    REQUIRE(::setsockopt(descriptor(*c.client), SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    put(*c.client, l, much);
    c.client->shutdownWrite();
    CHECK(take(*c.server, l, 100'000, 100'000) == much);
  }
}

TEST_CASE("a reset connection is an error to the reader and to the next writer", "[reactor]") {
  Loop l;
  Connection c(l);
  linger hard{1, 0};
  REQUIRE(::setsockopt(descriptor(*c.client), SOL_SOCKET, SO_LINGER, &hard, sizeof hard) == 0);
  char buffer[16];
  auto reading = c.server->tryRead(buffer, 16, 16);
  CHECK_FALSE(reading.poll(l.scope));
  c.client = nullptr;
  CHECK_THROWS_AS(reading.wait(l.scope), kj::Exception);
  bool failed = false;
  for (int i = 0; i < 3 && !failed; ++i) {
    c.server->write("x", 1)
        .then([] {},
              [&](kj::Exception&& e) {
                CHECK(e.getType() == kj::Exception::Type::DISCONNECTED);
                failed = true;
              })
        .wait(l.scope);
    l.scope.poll();
  }
  CHECK(failed);
}

TEST_CASE("whenWriteDisconnected resolves when the peer is gone, not when it half-closes",
          "[reactor]") {
  Loop l;
  Connection c(l);
  auto gone = c.server->whenWriteDisconnected();
  c.client->shutdownWrite();
  CHECK(take(*c.server, l, 1, 1).empty());
  CHECK_FALSE(gone.poll(l.scope));
  linger hard{1, 0};
  REQUIRE(::setsockopt(descriptor(*c.client), SOL_SOCKET, SO_LINGER, &hard, sizeof hard) == 0);
  c.client = nullptr;
  gone.wait(l.scope);
}

TEST_CASE("what nobody reads does not keep the loop busy, and is there when somebody does",
          "[reactor]") {
  Loop l;
  Connection c(l);
  put(*c.client, l, "one");
  CHECK(take(*c.server, l, 3, 16) == "one");
  char buffer[16];
  auto dropped = kj::heap(c.server->tryRead(buffer, 1, 16));
  CHECK_FALSE(dropped->poll(l.scope));
  dropped = nullptr;
  auto watched = [&] { return event_base_get_num_events(l.port.base(), EVENT_BASE_COUNT_ADDED); };
  const int before = watched();
  put(*c.client, l, "two");
  while (watched() == before) l.port.wait();
  CHECK(watched() == before - 1);
  CHECK(take(*c.server, l, 3, 16) == "two");
}

TEST_CASE("TCP connections send small messages at once, on both sides", "[reactor]") {
  Loop l;
  Connection c(l);
  for (auto* stream : {c.client.get(), c.server.get()}) {
    int on = 0;
    kj::uint length = sizeof on;
    stream->getsockopt(IPPROTO_TCP, TCP_NODELAY, &on, &length);
    CHECK(on == 1);
  }
}

TEST_CASE("a pipe carries bytes out and in, and its end is seen", "[reactor]") {
  Loop l;
  int fds[2];
  REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
  auto in = l.low->wrapInputFd(kj::AutoCloseFd(fds[0]));
  auto out = l.low->wrapOutputFd(kj::AutoCloseFd(fds[1]));
  std::string much = pattern(300'000);
  std::string got(much.size() + 5, '\0');
  auto reading = in->tryRead(got.data(), got.size() + 1, got.size());
  put(*out, l, "head ");
  out->write(much.data(), much.size()).wait(l.scope);
  out = nullptr;
  CHECK(reading.wait(l.scope) == got.size());
  CHECK(got == "head " + much);
}

TEST_CASE("FF-E9: who asks and does not read is not read until it does", "[reactor]") {
  Loop l;
  Connection c(l);
  dynamic_cast<FdStream&>(*c.server).readOnlyWhileRead(true);
  std::string answers = pattern(8 << 20);
  auto writing = c.server->write(answers.data(), answers.size());
  CHECK_FALSE(writing.poll(l.scope));
  put(*c.client, l, "another question");
  std::string got(16, '\0');
  auto reading = c.server->tryRead(got.data(), got.size(), got.size());
  CHECK_FALSE(reading.poll(l.scope));
  std::string taken(answers.size(), '\0');
  CHECK(c.client->tryRead(taken.data(), taken.size(), taken.size()).wait(l.scope) == taken.size());
  writing.wait(l.scope);
  CHECK(reading.wait(l.scope) == got.size());
  CHECK(got == "another question");
}

// Whoever accepts has to say so and to wait: the connection stays in the backlog.
TEST_CASE("out of descriptors an accept fails, and works again when there are some", "[reactor]") {
  Loop l;
  auto listener = l.address("127.0.0.1:0")->listen();
  auto client = l.address(kj::str("127.0.0.1:", listener->getPort()))->connect().wait(l.scope);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  int next = ::dup(0);
  ::close(next);
  rlimit none = before;
  none.rlim_cur = rlim_t(next);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto failure = kj::runCatchingExceptions([&] { listener->accept().wait(l.scope); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  KJ_IF_MAYBE (e, failure) {
    CHECK_THAT(e->getDescription().cStr(), Catch::Contains("Too many open files"));
  } else {
    FAIL("it was accepted");
  }
  auto server = listener->accept().wait(l.scope);
  put(*client, l, "hello");
  CHECK(take(*server, l, 5, 5) == "hello");
}

TEST_CASE("connecting where nobody listens is DISCONNECTED", "[reactor]") {
  Loop l;
  auto listener = l.address("127.0.0.1:0")->listen();
  auto port = listener->getPort();
  listener = nullptr;
  bool failed = false;
  l.address(kj::str("127.0.0.1:", port))
      ->connect()
      .then([](auto&&) {},
            [&](kj::Exception&& e) {
              failed = true;
              CHECK(e.getType() == kj::Exception::Type::DISCONNECTED);
            })
      .wait(l.scope);
  CHECK(failed);
}

TEST_CASE("a TCP socket that is wrapped by hand does not hold small writes back", "[reactor]") {
  Loop l;
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  auto stream = l.low->wrapSocketFd(fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
  int on = 0;
  kj::uint size = sizeof on;
  stream->getsockopt(IPPROTO_TCP, TCP_NODELAY, &on, &size);
  CHECK(on != 0);
}
