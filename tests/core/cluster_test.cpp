// What a cluster shows of itself, and what it answers to those it does not know.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "core/cluster.h"
#include "core/describe.h"

using namespace ts;

namespace {

const NodeId n0{0};

// One node with two devices, one group, jobs 1 and 2 that both want device 0.
struct TwoJobs {
  Cluster cluster{ClusterConfig{}};
  Actions out;

  TwoJobs() {
    cluster.configure(GroupId{1}, {});
    send(NodeJoined{n0, {{n0, 0}, {n0, 1}}});
    send(NodeReported{n0});
    for (unsigned j : {1U, 2U}) {
      send(JobDeclared{JobId{j}, GroupId{1}, {}});
      send(ParticipantJoined{ParticipantId{j}, JobId{j}, n0, ProcessId{j}, {{n0, 0}}});
    }
  }
  Actions& send(const Event& event) { return at(Instant{}, event); }
  Actions& at(Instant now, const Event& event) {
    out.clear();
    cluster.step(now, event, out);
    return out;
  }
  void acquire(unsigned who) { send(AcquireRequested{RequestId{who}, ParticipantId{who}}); }
  // The cause of the only answer or notice.
  Cause cause() const {
    REQUIRE(out.size() == 1);
    if (const auto* refuse = std::get_if<Refuse>(&out[0])) return refuse->cause;
    return std::get<Notice>(out[0]).cause;
  }
};

}  // namespace

TEST_CASE(
    "FF-D20: what is refused is asked again ever more rarely, and at least every thirty seconds",
    "[core]") {
  TwoJobs t;
  t.send(MemberSeen{JobId{1}, n0, {MemberId{11}, Residency::Resident, 10, 0, {{n0, 0}}}});
  t.acquire(1);
  t.acquire(2);
  t.send(Yielded{ParticipantId{1}, t.cluster.view(JobId{1})->epoch});
  std::vector<double> waits;
  Instant now{};
  for (int attempt = 0; attempt < 12; ++attempt) {
    std::optional<OperationId> asked;
    for (const Action& action : t.out)
      if (const auto* prepare = std::get_if<Prepare>(&action)) asked = prepare->operation;
    REQUIRE(asked);
    Outcome no{.code = Outcome::Code::Refused, .cause = Cause::NoHostMemory};
    t.at(now, OrderFinished{*asked, no});
    REQUIRE(t.cluster.nextWake());
    waits.push_back(std::chrono::duration<double>(*t.cluster.nextWake() - now).count());
    now = *t.cluster.nextWake();
    t.at(now, TimePassed{});
  }
  CHECK(waits == std::vector<double>{0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30});
}

TEST_CASE("P38: a view tells who holds, who waits, and for whom", "[core][view]") {
  TwoJobs t;
  t.send(MemberSeen{JobId{1}, n0, {MemberId{11}, Residency::Resident, 10, 0, {{n0, 0}}}});
  t.acquire(1);
  t.acquire(2);
  GroupView group = *t.cluster.view(GroupId{1});
  CHECK(group.holders == std::vector<JobId>{JobId{1}});
  CHECK(group.queue == std::vector<JobId>{JobId{2}});
  JobView holder = *t.cluster.view(JobId{1});
  CHECK(holder.phase == JobPhase::Holding);
  CHECK(holder.entered == 1);
  REQUIRE(holder.members.size() == 1);
  CHECK(holder.members[0].bytes == 10);
  JobView waiter = *t.cluster.view(JobId{2});
  CHECK(waiter.phase == JobPhase::Waiting);
  CHECK(waiter.place == 1);
  CHECK(waiter.waitsFor == std::vector<JobId>{JobId{1}});
  CHECK(t.cluster.groups().size() == 1);
  CHECK(t.cluster.jobs().size() == 2);
  CHECK_FALSE(t.cluster.view(GroupId{9}));
  CHECK_FALSE(t.cluster.view(JobId{9}));
}

TEST_CASE("P62: a member shows as quiescing, saving and restoring while it is moved",
          "[core][view]") {
  TwoJobs t;
  t.send(MemberSeen{JobId{1}, n0, {MemberId{11}, Residency::Resident, 10, 0, {{n0, 0}}}});
  auto residency = [&] { return t.cluster.view(JobId{1})->members.at(0).residency; };
  t.acquire(2);
  auto finish = [&](Residency left) {
    OperationId last{};
    for (const Action& a : t.out) {
      std::visit(
          [&](const auto& x) {
            if constexpr (requires { x.operation; }) last = x.operation;
          },
          a);
    }
    Outcome o;
    o.members = {{MemberId{11}, left, 10, 0, {{n0, 0}}}};
    t.send(OrderFinished{last, o});
  };
  CHECK(t.cluster.view(JobId{2})->phase == JobPhase::Switching);
  finish(Residency::Resident);  // prepare
  CHECK(residency() == Residency::Quiescing);
  finish(Residency::Quiet);
  CHECK(residency() == Residency::Saving);
  finish(Residency::Saved);
  CHECK(residency() == Residency::Saved);
}

TEST_CASE("a gang that has not gathered says how many are missing", "[core][view]") {
  TwoJobs t;
  t.send(JobDeclared{JobId{3}, GroupId{1}, {.gang = 2}});
  t.send(ParticipantJoined{ParticipantId{3}, JobId{3}, n0, ProcessId{3}, {{n0, 1}}});
  t.acquire(3);
  JobView v = *t.cluster.view(JobId{3});
  CHECK(v.phase == JobPhase::Waiting);
  CHECK(v.cause == Cause::NoClaim);
  CHECK(v.detail == "1 of 2 participants have joined");
}

TEST_CASE("a waiting acquire has a ticket that a later master can be given", "[core][view]") {
  TwoJobs t;
  t.acquire(1);
  t.acquire(2);
  CHECK_FALSE(t.cluster.ticket(RequestId{1}));
  CHECK(t.cluster.ticket(RequestId{2}));
  CHECK_FALSE(t.cluster.ticket(RequestId{7}));
}

TEST_CASE("what is not known or not allowed is refused by name", "[core]") {
  TwoJobs t;
  t.send(JobDeclared{JobId{5}, GroupId{7}, {}});
  CHECK(t.cause() == Cause::UnknownGroup);
  t.send(AcquireRequested{RequestId{8}, ParticipantId{99}});
  CHECK(t.cause() == Cause::UnknownParticipant);
  // A device belongs to one group, a job too.
  t.cluster.configure(GroupId{2}, {});
  t.send(JobDeclared{JobId{1}, GroupId{2}, {}});
  CHECK(t.cause() == Cause::DeviceOwned);
  t.send(JobDeclared{JobId{4}, GroupId{2}, {}});
  t.send(ParticipantJoined{ParticipantId{4}, JobId{4}, n0, ProcessId{4}, {{n0, 0}}});
  CHECK(t.cause() == Cause::DeviceOwned);
  // A claim without devices.
  t.send(ParticipantJoined{ParticipantId{6}, JobId{4}, n0, ProcessId{6}, {}});
  t.send(AcquireRequested{RequestId{9}, ParticipantId{6}});
  CHECK(t.cause() == Cause::NoClaim);
  // Twice.
  t.acquire(1);
  t.send(AcquireRequested{RequestId{20}, ParticipantId{1}});
  CHECK(t.cause() == Cause::AlreadyEntered);
  t.acquire(2);
  t.send(AcquireRequested{RequestId{21}, ParticipantId{2}});
  CHECK(t.cause() == Cause::AlreadyWaiting);
}

TEST_CASE("facts about strangers and orders long forgotten change nothing", "[core]") {
  TwoJobs t;
  CHECK(t.send(JobEnded{JobId{77}}).empty());
  CHECK(t.send(MemberDied{MemberId{77}}).empty());
  CHECK(t.send(MemberCleared{MemberId{77}}).empty());
  CHECK(t.send(Yielded{ParticipantId{77}, {1, 1}}).empty());
  CHECK(t.send(ParticipantLeft{ParticipantId{77}, true}).empty());
  CHECK(t.send(AcquireCancelled{RequestId{77}}).empty());
  CHECK(t.send(OrderFinished{OperationId{77}, {}}).empty());
  CHECK(t.send(OrderOverdue{OperationId{77}}).empty());
  CHECK(t.send(GroupPaused{GroupId{77}, true}).empty());
  CHECK(t.send(NodeReported{n0}).empty());  // no report was under way
}

// Its node tells the acquire before the report is over: the call is waited for, not forgotten.
TEST_CASE("who asks while its node still reports goes on waiting", "[core]") {
  TwoJobs t;
  t.acquire(1);
  t.send(NodeJoined{n0, {{n0, 0}, {n0, 1}}});
  for (unsigned j : {1U, 2U}) {
    t.send(JobDeclared{JobId{j}, GroupId{1}, {}});
    t.send(ParticipantJoined{ParticipantId{j}, JobId{j}, n0, ProcessId{j}, {{n0, 0}}});
  }
  t.send(GrantReported{JobId{1}, n0, {1, 1}, {{n0, 0}}});
  t.send(SliceReported{ParticipantId{1}, {1, 1}});
  t.acquire(2);
  t.send(NodeReported{n0});
  for (const auto& action : t.out) CHECK_FALSE(std::holds_alternative<Refuse>(action));
  CHECK(t.cluster.view(JobId{2})->phase == JobPhase::Waiting);
}

TEST_CASE("a group takes a new configuration for what comes", "[core]") {
  TwoJobs t;
  GroupConfig config;
  config.holdLimit = std::chrono::seconds(1);
  t.cluster.configure(GroupId{1}, config);
  t.acquire(1);
  t.acquire(2);
  REQUIRE(t.cluster.nextWake());
  CHECK(*t.cluster.nextWake() == Instant{std::chrono::seconds(1)});
}
