#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "child.h"
#include "test_node.h"

using namespace ts;
using namespace ts::test;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

}  // namespace

TEST_CASE("P63: a snapshot by hand saves, restores, and knows whom it may touch", "[node]") {
  Loop l;
  TestNode node(l, nullptr);
  node.config.backend = "fake";
  node.start();
  auto p = node.program();
  node.cards.use(p->pid(), 0, kGiB);
  auto saved = p->call(pidMessage(TSL_SNAPSHOT, p->pid()));
  INFO(saved.detail);
  CHECK(saved.status == TSL_OK);
  CHECK(node.cards.memory(0)->usedBytes == 0);
  CHECK(p->call(pidMessage(TSL_RESTORE, p->pid())).status == TSL_OK);
  CHECK(node.cards.memory(0)->usedBytes == kGiB);

  for (pid_t nobody : {0, 1, -1, 99999999}) {
    auto reply = p->call(pidMessage(TSL_SNAPSHOT, nobody));
    CHECK(reply.status == TSL_NO_SUCH_PROCESS);
    CHECK(std::string(reply.detail).find(std::to_string(nobody)) != std::string::npos);
  }
  node.backend.fake.failIn(0, "quiesce",
                           {.code = BackendOutcome::Code::NoContext, .detail = "no device state"});
  CHECK(p->call(pidMessage(TSL_SNAPSHOT, p->pid())).status == TSL_NO_CONTEXT);
}

TEST_CASE("a snapshot by hand of another user's process is refused", "[node]") {
  if (::getuid() != 0) return;  // it takes root to be somebody else
  Loop l;
  TestNode node(l, nullptr);
  node.config.backend = "fake";
  node.start();
  auto p = node.program();
  auto other = node.program(65534);
  auto reply = other->call(pidMessage(TSL_SNAPSHOT, p->pid()));
  CHECK(reply.status == TSL_PERMISSION);
}

TEST_CASE("a snapshot by hand outlives the daemon, and only what it saved is restored", "[node]") {
  Loop l;
  TestNode node(l, nullptr);
  node.config.backend = "fake";
  node.start();
  auto p = node.program();
  auto other = node.program();
  node.cards.use(p->pid(), 0, kGiB);
  auto unknown = p->call(pidMessage(TSL_RESTORE, other->pid()));
  CHECK(unknown.status == TSL_INVALID);
  CHECK(std::string(unknown.detail).find("was not saved here") != std::string::npos);
  REQUIRE(p->call(pidMessage(TSL_SNAPSHOT, p->pid())).status == TSL_OK);
  node.restart();
  CHECK(node->registry().savedByHand().size() == 1);
  p->connect();
  REQUIRE(p->hello().status == TSL_OK);
  SECTION("it comes back") {
    CHECK(p->call(pidMessage(TSL_RESTORE, p->pid())).status == TSL_OK);
    CHECK(node.cards.memory(0)->usedBytes == kGiB);
  }
  SECTION("not where nothing can be measured") {
    node.cards.setBlind(FakeCards::Blind::All);
    auto reply = p->call(pidMessage(TSL_RESTORE, p->pid()));
    CHECK(reply.status == TSL_NO_DEVICE_MEMORY);
    CHECK(std::string(reply.detail) == "device 0 cannot be measured: fake cards");
  }
  SECTION("with its process it is forgotten") {
    p->kill();
    l.pumpUntil([&] { return node->registry().savedByHand().empty(); });
  }
}

TEST_CASE("P36: whoever asks by hand is answered at the deadline, and the call goes on", "[node]") {
  Loop l;
  TestNode node(l, nullptr);
  node.config.backend = "fake";
  node.start();
  auto p = node.program();
  node.cards.use(p->pid(), 0, kGiB);
  node.backend.fake.hold("save");
  auto ask = pidMessage(TSL_SNAPSHOT, p->pid());
  ask.u.pid.deadline_ms = 1;
  auto late = p->call(ask);
  CHECK(late.status == TSL_TIMED_OUT);
  CHECK(std::string(late.detail).find("goes on") != std::string::npos);
  CHECK(p->call(pidMessage(TSL_RESTORE, p->pid())).status == TSL_BUSY);
  node.backend.fake.letGo();
  l.pumpUntil([&] { return !node->registry().savedByHand().empty(); });
}

TEST_CASE("a thread is not taken for its process", "[node]") {
  Loop l;
  TestNode node(l, nullptr);
  node.start();
  std::atomic<pid_t> thread{0};
  std::promise<void> over;
  std::thread other([&] {
    thread = ::gettid();
    over.get_future().wait();
  });
  l.pumpUntil([&] { return thread != 0; });
  auto p = node.program();
  auto reply = p->call(pidMessage(TSL_SNAPSHOT, thread));
  over.set_value();
  other.join();
  CHECK(reply.status == TSL_NO_SUCH_PROCESS);
  CHECK(std::string(reply.detail).find("thread") != std::string::npos);
}
