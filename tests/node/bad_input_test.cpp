#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "node/local_versions.h"
#include "test_node.h"

using namespace ts;
using namespace ts::test;

namespace {

// Whatever one program does wrong, another notices nothing.
struct World {
  Loop l;
  FakeMaster master{l};
  TestNode node{l, &master};
  std::unique_ptr<Program> bystander;

  World() {
    node.start();
    bystander = node.joined("bystander", "1");
  }
  ~World() {
    CHECK(bystander->call(message(TSL_STATUS)).status == TSL_OK);
    CHECK_FALSE(bystander->hasMessage());
  }
};

void refused(const tsl_reply& reply, tsl_status status, const std::string& value) {
  CHECK(reply.status == status);
  INFO(reply.detail);
  CHECK(std::string(reply.detail).find(value) != std::string::npos);
}

}  // namespace

TEST_CASE("P47: an unknown group is refused with its name", "[node]") {
  World w;
  w.master.joinAnswer = {.code = Outcome::Code::Refused,
                         .cause = Cause::UnknownGroup,
                         .detail = "no group \"nosuch\""};
  auto p = w.node.program();
  refused(p->join("nosuch", "a"), TSL_UNKNOWN_GROUP, "nosuch");
  // It may try again, also another one.
  w.master.joinAnswer = {};
  CHECK(p->join("rl", "a").status == TSL_OK);
}

TEST_CASE("an acquire without a join is refused", "[node]") {
  World w;
  auto p = w.node.program();
  refused(p->acquire(), TSL_NOT_JOINED, std::to_string(p->pid()));
  refused(p->yield(3), TSL_NOT_JOINED, std::to_string(p->pid()));
  refused(p->leave(), TSL_NOT_JOINED, std::to_string(p->pid()));
}

TEST_CASE("a second join of a process is refused, on every connection", "[node]") {
  World w;
  auto p = w.node.joined("a");
  refused(p->join("rl", "a"), TSL_ALREADY_JOINED, "rl/a");
  refused(p->join("rl", "b"), TSL_ALREADY_JOINED, "rl/a");
}

TEST_CASE("P52: a yield without a slice is refused and changes nothing", "[node]") {
  World w;
  auto p = w.node.joined("a");
  refused(p->yield(3), TSL_NOT_ENTERED, "1.3");
  CHECK(w.master.count("yield") == 0);
}

TEST_CASE("a second acquire while one waits is refused", "[node]") {
  World w;
  auto p = w.node.joined("a");
  auto first = p->startAcquire();
  refused(p->acquire(), TSL_INVALID, std::to_string(first));
}

TEST_CASE("a deadline that is none is refused", "[node]") {
  World w;
  auto p = w.node.joined("a");
  refused(p->acquire(-5), TSL_INVALID, "-5");
}

TEST_CASE("another user cannot join a job", "[node]") {
  if (::getuid() != 0) return;  // it takes root to be somebody else
  World w;
  auto p = w.node.joined("a");
  constexpr uid_t kNobody = 65534;
  auto q = w.node.program(kNobody);
  refused(q->join("rl", "a"), TSL_PERMISSION, std::to_string(kNobody));
  CHECK(q->join("rl", "own").status == TSL_OK);
}

TEST_CASE("the master's word on a user reaches the program", "[node]") {
  World w;
  w.master.joinAnswer = {.code = Outcome::Code::Refused,
                         .cause = Cause::Forbidden,
                         .detail = "uid 0 may not use group rl"};
  auto p = w.node.program();
  refused(p->join("rl", "a"), TSL_PERMISSION, "group rl");
}

TEST_CASE("a message that is too short, too long or empty costs its connection only", "[node]") {
  World w;
  auto bytes = GENERATE(std::string("x"), std::string(255, 'x'), std::string(257, 'x'),
                        std::string(600, 'x'), std::string());
  auto p = w.node.program();
  p->sendBytes(bytes);
  refused(p->answerTo(0), TSL_PROTOCOL, "256");
  CHECK(p->isClosedByNode());
}

TEST_CASE("a malformed message costs its connection only", "[node]") {
  World w;
  auto p = w.node.program();
  auto m = message(TSL_STATUS);
  std::uint64_t answered = 0;
  std::string value;
  SECTION("another magic number") {
    m.header.magic = 0x12345678;
    value = "0x12345678";
  }
  SECTION("an unknown type") {
    m.header.type = 55;
    answered = 2;
    value = "55";
  }
  SECTION("a type that only the node sends") {
    m.header.type = TSL_REPLY;
    answered = 2;
    value = "64";
  }
  SECTION("a request number that does not grow") {
    m.header.request = 1;
    answered = 1;
    value = "does not grow";
  }
  SECTION("a name without an end") {
    m = joinMessage("rl", "a");
    std::memset(m.u.join.group, 'g', sizeof(m.u.join.group));
    answered = 2;
    value = "without an end";
  }
  p->send(m);
  refused(p->answerTo(answered), TSL_PROTOCOL, value);
  CHECK(p->isClosedByNode());
}

TEST_CASE("a connection begins with a hello", "[node]") {
  World w;
  Program p(w.l, w.node.config.socket);
  auto m = message(TSL_STATUS);
  refused(p.call(m), TSL_PROTOCOL, "HELLO");
  CHECK(p.isClosedByNode());
}

TEST_CASE("a library of the next release speaks the version that both know", "[node]") {
  World w;
  Program p(w.l, w.node.config.socket);
  auto m = message(TSL_HELLO);
  m.header.version = TSL_VERSION + 1;  // its own: what counts is the range
  m.u.hello = {TSL_VERSION, TSL_VERSION + 1};
  p.send(m);
  auto answer = p.receive();
  CHECK(answer.u.reply.status == TSL_OK);
  CHECK(answer.header.version == TSL_VERSION);
  CHECK(p.call(joinMessage("rl", "a")).status == TSL_OK);
}

TEST_CASE("a library without a version in common is refused with both ranges", "[node]") {
  World w;
  Program p(w.l, w.node.config.socket);
  auto m = message(TSL_HELLO);
  m.u.hello = {TSL_VERSION + 1, TSL_VERSION + 3};
  auto reply = p.call(m);
  refused(reply, TSL_VERSION_MISMATCH,
          describe(ts::VersionRange{TSL_VERSION + 1, TSL_VERSION + 3}));
  refused(reply, TSL_VERSION_MISMATCH, describe(ts::node::kLocalVersions));
  CHECK(p.isClosedByNode());
}

TEST_CASE("a message in another version than agreed on is refused with both", "[node]") {
  World w;
  Program p(w.l, w.node.config.socket);
  REQUIRE(p.hello().status == TSL_OK);
  auto m = joinMessage("rl", "a");
  m.header.version = 9;
  auto reply = p.call(m);
  refused(reply, TSL_VERSION_MISMATCH, "9");
  refused(reply, TSL_VERSION_MISMATCH, describe(ts::node::kLocalVersions));
  CHECK(p.isClosedByNode());
}

TEST_CASE("a forked child is refused and its parent goes on", "[node]") {
  World w;
  auto p = w.node.joined("a");
  auto request = p->sendFromChild(acquireMessage(-1));
  auto reply = p->answerTo(request);
  refused(reply, TSL_FORKED, std::to_string(p->pid()));
  CHECK(w.master.count("acquire") == 0);
  CHECK(p->call(message(TSL_STATUS)).status == TSL_OK);
}

TEST_CASE("a claim without devices is refused", "[node]") {
  World w;
  auto p = w.node.program();
  refused(p->join("rl", "a", "none"), TSL_NO_CLAIM, "none");
  auto m = joinMessage("rl", "a");
  m.u.join.flags = TSL_JOIN_NO_DEVICES;
  refused(p->call(m), TSL_NO_CLAIM, "none");
}

TEST_CASE("a claim that names what is not there is refused with it", "[node]") {
  World w;
  auto p = w.node.program();
  refused(p->join("rl", "a", "0,7"), TSL_INVALID, "7");
  refused(p->join("rl", "a", "GPU-nosuch"), TSL_INVALID, "GPU-nosuch");
  refused(p->join("rl", "a", "GPU-fake"), TSL_INVALID, "several");
}

TEST_CASE("a second group on a device is refused by the master's word", "[node]") {
  World w;
  w.master.joinAnswer = {.code = Outcome::Code::Refused,
                         .cause = Cause::DeviceOwned,
                         .detail = "device 0 of n1 is group rl's"};
  auto p = w.node.program();
  refused(p->join("other", "a", "0"), TSL_DEVICE_OWNED, "device 0");
}

TEST_CASE("names that are none are refused with them", "[node]") {
  World w;
  auto p = w.node.program();
  refused(p->join("", "a"), TSL_INVALID, "group");
  refused(p->join("a/b", "a"), TSL_INVALID, "a/b");
  refused(p->join("rl", "x y"), TSL_INVALID, "x y");
  refused(p->join("rl", "a", "0", "nosuch"), TSL_UNSUPPORTED, "nosuch");
}

TEST_CASE("joins of one job that contradict each other are refused", "[node]") {
  World w;
  auto p = w.node.program();
  REQUIRE(p->join("rl", "a", "0", "none", 2).status == TSL_OK);
  auto q = w.node.program();
  refused(q->join("rl", "a", "0", "none", 3), TSL_INVALID, "gang 2");
  refused(q->join("rl", "a", "0", "turns", 2), TSL_INVALID, "backend none");
}

TEST_CASE("without a master a join says where it was looked for", "[node]") {
  Loop l;
  FakeMaster master(l);
  master.stopListening();
  TestNode node(l, nullptr);
  node.config.master = master.address();
  node.start();
  auto p = node.program();
  refused(p->join("rl", "a"), TSL_MASTER_DOWN, master.address());
}

TEST_CASE("a join waits for a master that is away, until its deadline", "[node]") {
  Loop l;
  FakeMaster master(l);
  master.stopListening();
  TestNode node(l, nullptr);
  node.config.master = master.address();
  node.start();
  auto p = node.program();
  auto join = joinMessage("rl", "a");
  join.u.join.deadline_ms = 20;
  refused(p->call(join), TSL_MASTER_DOWN, master.address());
  join.u.join.deadline_ms = 3'600'000;
  auto request = p->send(join);
  l.pumpUntil([&] { return !node.logged({"join-waits"}).empty(); });
  master.listenAgain();
  CHECK(p->answerTo(request).status == TSL_OK);
}

TEST_CASE("a join whose caller goes waits for nothing", "[node]") {
  Loop l;
  FakeMaster master(l);
  master.stopListening();
  TestNode node(l, nullptr);
  node.config.master = master.address();
  node.start();
  auto p = node.program();
  auto join = joinMessage("rl", "a");
  join.u.join.deadline_ms = 3'600'000;
  p->send(join);
  l.pumpUntil([&] { return !node.logged({"join-waits"}).empty(); });
  p->disconnect();
  l.pumpUntil([&] { return node->connections() == 0; });
  master.listenAgain();
  l.pumpUntil([&] { return node->link().isUp(); });
  CHECK(master.count("join") == 0);
}

TEST_CASE("a master that is another program is explained by its port", "[node]") {
  Loop l;
  auto other = l.address("127.0.0.1:0")->listen();
  TestNode node(l, nullptr);
  node.config.master = "127.0.0.1:" + std::to_string(other->getPort());
  node.start();
  other->accept().wait(l.scope);  // and closed
  l.pumpUntil([&] { return !node.logged({"master-down", "6830, not 6831"}).empty(); });
}

TEST_CASE("a node alone says so to joins", "[node]") {
  Loop l;
  TestNode node(l, nullptr);
  node.start();
  auto p = node.program();
  refused(p->join("rl", "a"), TSL_MASTER_DOWN, "alone");
}

TEST_CASE("a claim that is too long is refused with the limit", "[node]") {
  World w;
  auto p = w.node.program();
  std::string piece;
  while (piece.size() < 150) piece += "0,";
  for (int i = 0; i < 60; ++i) p->send(claimMessage(piece));
  p->send(claimMessage("0"));
  refused(p->call(joinMessage("rl", "a")), TSL_INVALID, "8192");
  CHECK(p->join("rl", "a", "0").status == TSL_OK);
}

namespace {

// While it lives this process can open `room` descriptors more.
class FewDescriptors {
public:
  explicit FewDescriptors(rlim_t room) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    int lowest = ::dup(0);
    ::close(lowest);
    rlimit few{rlim_t(lowest) + room, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("who connects while no descriptor is left is taken in when there are some again",
          "[node]") {
  auto room =
      GENERATE(0, 1, 2);  // none for the connection, for its pidfd, for a look at the process
  World w;
  auto p = w.node.program();
  p->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 1; });
  {
    FewDescriptors few(room);
    p->connect();
    w.l.scope.poll();
    CHECK(w.node->connections() == 1);
  }
  // Nobody's connection ends.
  CHECK(p->hello().status == TSL_OK);
  CHECK(w.node.logged({"local-accept-paused"}) != "");
}

TEST_CASE("FF-E1: descriptors that stay away for long end nothing but new connections", "[node]") {
  auto room = GENERATE(0, 1);  // none for the connection, or for its pidfd
  World w;
  auto p = w.node.program();
  p->disconnect();
  w.l.pumpUntil([&] { return w.node->connections() == 1; });
  {
    FewDescriptors few{rlim_t(room)};
    p->connect();
    // Long enough for it to be tried again and again.
    w.l.port.timer().afterDelay(350 * kj::MILLISECONDS).wait(w.l.scope);
    CHECK(w.node->connections() == 1);
    CHECK(w.bystander->call(message(TSL_STATUS)).status == TSL_OK);
  }
  CHECK(p->hello().status == TSL_OK);
}

TEST_CASE("FF-E1: a flood of nonsense is a line a second", "[node]") {
  World w;
  auto begin = w.l.port.timer().now();
  for (int i = 0; i < 30; ++i) {
    auto p = w.node.program();
    p->sendBytes("nonsense");
    CHECK_FALSE(p->isClosedByNode());  // it is told first
  }
  auto seconds = (w.l.port.timer().now() - begin) / kj::SECONDS;
  CHECK(w.node.lines("local-message-refused") <= seconds + 2);
}
