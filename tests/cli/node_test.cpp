#include "cli/node.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <thread>

#include "reactor/seqpacket.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::cli;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

// Answers one connection on a thread of its own until it closes.
class FakeNode {
public:
  using Reply = std::function<void(int socket, const tsl_message& request)>;
  explicit FakeNode(Reply reply)
      : listener_(listenSeqpacket(path(), 0600)), thread_([this, reply] { serve(reply); }) {}
  ~FakeNode() { thread_.join(); }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;
  std::string path() const { return dir_ / "node.sock"; }

private:
  static void wait(int fd) {
    pollfd state{fd, POLLIN, 0};
    ::poll(&state, 1, -1);
  }
  void serve(const Reply& reply) {
    wait(listener_);
    auto socket = acceptSeqpacket(listener_);
    while (socket) {
      wait(*socket);
      tsl_message message{};
      Packet packet = receivePacket(*socket, &message, sizeof message);
      if (packet.kind == Packet::Kind::Closed) return;
      reply(*socket, message);
    }
  }
  test::TempDir dir_;
  kj::AutoCloseFd listener_;
  std::thread thread_;
};

void answer(int socket, const tsl_message& request, tsl_status status, const char* detail = "") {
  tsl_message message{};
  message.header = {TSL_MAGIC, TSL_VERSION, TSL_REPLY, request.header.request};
  message.u.reply.status = status;
  message.u.reply.bytes = 42;
  std::strncpy(message.u.reply.detail, detail, sizeof message.u.reply.detail - 1);
  sendPacket(socket, &message, sizeof message);
}

Failure failureOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure;
  }
  return Failure(Exit::Ok, "it did not fail");
}

}  // namespace

TEST_CASE("a request is answered by the reply of its number, whatever comes between", "[cli]") {
  FakeNode fake([](int socket, const tsl_message& request) {
    tsl_message other{};
    other.header = {TSL_MAGIC, TSL_VERSION, TSL_ASK_YIELD, 0};
    sendPacket(socket, &other, sizeof other);
    sendPacket(socket, "", 0);
    answer(socket, request, TSL_OK);
  });
  Node node({fake.path(), "test"}, 10s);
  auto got = node.ask(TSL_SNAPSHOT, tsl_message{}, 10s);
  CHECK(got.reply.status == TSL_OK);
  CHECK(got.reply.bytes == 42);
}

TEST_CASE("a node that speaks another version is a failure with its words", "[cli]") {
  FakeNode fake([](int socket, const tsl_message& request) {
    answer(socket, request, TSL_VERSION_MISMATCH, "this node speaks 7 to 9");
  });
  Failure failure = failureOf([&] { Node({fake.path(), "test"}, 10s); });
  CHECK(failure.exit() == Exit::Failed);
  CHECK_THAT(failure.what(), Contains("this node speaks 7 to 9"));
}

TEST_CASE("what the node could not read is answered all the same", "[cli]") {
  FakeNode fake([](int socket, const tsl_message& request) {
    if (request.header.type == TSL_HELLO) return answer(socket, request, TSL_OK);
    tsl_message unread = request;
    unread.header.request = 0;
    answer(socket, unread, TSL_PROTOCOL, "a message of 7 bytes");
  });
  Node node({fake.path(), "test"}, 10s);
  auto got = node.ask(TSL_SNAPSHOT, tsl_message{}, 10s);
  CHECK(got.reply.status == TSL_PROTOCOL);
  CHECK(got.detail() == "a message of 7 bytes");
}

TEST_CASE("the error of a late answer says how long it was waited for", "[cli]") {
  FakeNode fake([](int socket, const tsl_message& request) {
    if (request.header.type == TSL_HELLO) answer(socket, request, TSL_OK);
  });
  Node node({fake.path(), "test"}, 10s);
  Failure late = failureOf([&] { node.ask(TSL_SNAPSHOT, tsl_message{}, 30ms); });
  CHECK(late.exit() == Exit::Unreachable);
  CHECK_THAT(late.what(), Contains("no answer within 30.0 ms"));
}

TEST_CASE("a node that is not there, is silent or goes away is unreachable, and where is said",
          "[cli]") {
  test::TempDir dir;
  Failure missing = failureOf([&] { Node({dir / "none.sock", "--socket"}, 10s); });
  CHECK(missing.exit() == Exit::Unreachable);
  CHECK_THAT(missing.what(), Contains("none.sock (--socket): No such file") &&
                                 Contains("tsnoded --config /etc/timeslice/node.toml"));
  {
    FakeNode fake([](int, const tsl_message&) {});
    Failure silent = failureOf([&] { Node({fake.path(), "test"}, 20ms); });
    CHECK(silent.exit() == Exit::Unreachable);
    CHECK_THAT(silent.what(), Contains("no answer within 20.0 ms"));
  }
  {
    FakeNode fake([](int socket, const tsl_message&) { ::shutdown(socket, SHUT_RDWR); });
    Failure gone = failureOf([&] { Node({fake.path(), "test"}, 10s); });
    CHECK_THAT(gone.what(), Contains("closed the connection"));
  }
}
