#include <catch2/catch.hpp>

#include "node_world.h"

using namespace ts;
using namespace ts::test;

TEST_CASE("a program joins, gets its turn and gives it back", "[node]") {
  World w;
  auto a = w.node.joined("a");
  CHECK(w.master.heard("join a uid=" + std::to_string(::getuid())));
  w.hear("member-seen a");
  REQUIRE(w.master.members["a"].size() == 1);
  CHECK(w.master.members["a"][0].residency == Residency::Resident);
  CHECK(w.master.members["a"][0].bytes == 0);

  auto grant = w.enter(*a, "a", 7);
  CHECK(grant.status == TSL_OK);
  CHECK(grant.epoch_generation == 1);
  CHECK(grant.epoch_counter == 7);
  CHECK(grant.waited_us == 1234);

  CHECK(a->yield(7).status == TSL_OK);
  auto id = std::to_string(w.master.participants["a"].participant);
  w.hear("yield " + id + " epoch=7");
  CHECK(w.master.endSlice("a", 7).wait(w.l.scope).ok());

  CHECK(a->leave().status == TSL_OK);
  w.hear("left " + id);
  w.hear("job-ended a");
  CHECK(w.node->registry().jobs().empty());
}

TEST_CASE("a job without a name is named by its user and its process", "[node]") {
  World w;
  auto p = w.node.program();
  CHECK(p->join("rl", "").status == TSL_OK);
  auto name = "u" + std::to_string(::getuid()) + "." + std::to_string(p->pid());
  CHECK(w.master.participants.contains(name));
}

TEST_CASE("a claim is every device unless it says which", "[node]") {
  World w;
  auto p = w.node.program();
  REQUIRE(p->join("rl", "all").status == TSL_OK);
  auto q = w.node.program();
  REQUIRE(q->join("rl", "one", "GPU-fake-1").status == TSL_OK);
  for (const auto& [id, participant] : w.node->registry().participants()) {
    bool all = participant.job.name == "all";
    CHECK(participant.devices ==
          (all ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{1}));
  }
}

TEST_CASE("an acquire that is refused is answered with the cause", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto request = a->startAcquire(0);
  auto number = w.requestOf("a");
  CHECK(w.master.count("acquire") == 1);
  CHECK(w.master.told.back().ends_with("try"));
  w.master.refuse(number, Cause::Busy, "b holds device 0");
  auto reply = a->answerTo(request);
  CHECK(reply.status == TSL_BUSY);
  CHECK(std::string(reply.detail) == "b holds device 0");
}

TEST_CASE("an acquire whose deadline is over is answered once, and withdrawn", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto request = a->startAcquire(1);
  auto number = w.requestOf("a");
  auto reply = a->answerTo(request);
  CHECK(reply.status == TSL_TIMED_OUT);
  w.hear("cancel " + std::to_string(number));
  // A grant that was on its way does not make it a holder.
  CHECK(w.master.grant("a", 7, {0}, {number}).wait(w.l.scope).ok());
  CHECK(a->yield(7).status == TSL_NOT_ENTERED);
}

TEST_CASE("a cancelled acquire answers that it was cancelled", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto request = a->startAcquire();
  auto number = w.requestOf("a");
  auto cancel = message(TSL_CANCEL);
  cancel.u.cancel.target = request;
  a->send(cancel);
  CHECK(a->answerTo(request).status == TSL_CANCELLED);
  w.hear("cancel " + std::to_string(number));
  a->send(cancel);                  // nothing waits any more: no answer, no harm
  cancel.header.request = request;  // as from another thread that was overtaken
  a->send(cancel);
  CHECK(w.enter(*a, "a", 8).epoch_counter == 8);
}

TEST_CASE("a grant that came before the cancel stands", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto request = a->startAcquire();
  CHECK(w.master.grant("a", 7, {0}, {w.requestOf("a")}).wait(w.l.scope).ok());
  auto cancel = message(TSL_CANCEL);
  cancel.u.cancel.target = request;
  a->send(cancel);
  CHECK(a->answerTo(request).status == TSL_OK);
  CHECK(a->yield(7).status == TSL_OK);
  CHECK(w.master.count("cancel") == 0);
}

TEST_CASE("others waiting is passed on to whoever is in the slice", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  w.master.askToYield("a", 7);
  auto m = a->receive();
  CHECK(m.header.type == TSL_ASK_YIELD);
  CHECK(m.header.request == 0);
  CHECK(m.u.reply.waiters == 1);
  CHECK(m.u.reply.epoch_counter == 7);
}

TEST_CASE("a yield may be repeated and is told once", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  CHECK(a->yield(7).status == TSL_OK);
  CHECK(a->yield(7).status == TSL_OK);
  w.enter(*a, "a", 8);
  CHECK(a->yield(7).status == TSL_STALE);
  CHECK(a->yield(8).status == TSL_OK);
  w.l.pumpUntil([&] { return w.master.count("yield") == 2; });
}

TEST_CASE("a running slice lets more participants in, each answered once", "[node]") {
  World w;
  auto a = w.node.joined("a");
  w.enter(*a, "a", 7);
  auto b = w.node.joined("a");
  auto grant = w.enter(*b, "a", 7);
  CHECK(grant.status == TSL_OK);
  CHECK(a->yield(7).status == TSL_OK);
  CHECK(b->yield(7).status == TSL_OK);
}

TEST_CASE("two programs take turns on one device, never both", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto b = w.node.joined("b");
  w.enter(*a, "a", 7);
  auto waiting = b->startAcquire();
  auto number = w.requestOf("b");
  auto refused = w.master.grant("b", 8, {0}, {number}).wait(w.l.scope);
  CHECK(refused.code == Outcome::Code::Refused);
  CHECK(refused.detail.find("rl/a") != std::string::npos);
  CHECK(a->yield(7).status == TSL_OK);
  CHECK(w.master.endSlice("a", 7).wait(w.l.scope).ok());
  CHECK(w.master.grant("b", 8, {0}, {number}).wait(w.l.scope).ok());
  CHECK(b->answerTo(waiting).epoch_counter == 8);
}

TEST_CASE("a full switch travels with nothing to move", "[node]") {
  World w;
  auto a = w.node.joined("a");
  auto b = w.node.joined("b");
  auto outgoing = w.master.members["a"].at(0).member;
  auto incoming = w.master.members["b"].at(0).member;
  w.enter(*a, "a", 7);
  a->yield(7);
  CHECK(w.master.endSlice("a", 7).wait(w.l.scope).ok());
  CHECK(w.master.prepare("b", {outgoing}, {incoming}).wait(w.l.scope).ok());
  auto quiet = w.master.quiesce("a").wait(w.l.scope);
  INFO(quiet.detail);
  REQUIRE(quiet.members.size() == 1);
  CHECK(quiet.members[0].residency == Residency::Quiet);
  CHECK(w.master.save("a", outgoing).wait(w.l.scope).members.at(0).residency == Residency::Saved);
  auto request = b->startAcquire();
  CHECK(w.master.grant("b", 8, {0}, {w.requestOf("b")}).wait(w.l.scope).ok());
  CHECK(b->answerTo(request).status == TSL_OK);
  CHECK(b->yield(8).status == TSL_OK);
  CHECK(w.master.restore("a", outgoing).wait(w.l.scope).members.at(0).residency ==
        Residency::Quiet);
  CHECK(w.master.release("a").wait(w.l.scope).members.at(0).residency == Residency::Resident);
}

TEST_CASE("pure turns have no members", "[node]") {
  World w;
  auto a = w.node.joined("a", "0", "turns");
  w.enter(*a, "a", 7);
  CHECK(w.master.members["a"].empty());
  CHECK(a->yield(7).status == TSL_OK);
}
