// How events and actions read: these lines are what logs and scripts show.
#include <catch2/catch.hpp>

#include "core/describe.h"
#include "story.h"

using namespace ts;

namespace {

const ts::test::StoryNames kNames;
const JobId A{1};
const NodeId n0{0};

std::string line(const Event& e) {
  return describe(e, kNames);
}

}  // namespace

TEST_CASE("every event reads as one line that begins with its verb", "[core][describe]") {
  MemberFact fact{MemberId{11}, Residency::Saved, 10, 2, {{n0, 1}}};
  CHECK(line(NodeJoined{n0, {{n0, 0}, {n0, 1}}}) == "node-joined node=n0 devices=n0:0,1");
  CHECK(line(NodeReported{n0}) == "node-reported node=n0");
  CHECK(line(NodeSuspected{n0}) == "node-suspected node=n0");
  CHECK(line(NodeDied{n0}) == "node-died node=n0");
  CHECK(line(NodeDrained{n0, true}) == "drained node=n0");
  CHECK(line(NodeDrained{n0, false}) == "undrained node=n0");
  JobOptions options{2, 3, OnBroken::Keep};
  CHECK(line(JobDeclared{A, GroupId{1}, options, {n0}}) ==
        "declared job=A group=1 gang=2 priority=3 keep-broken=yes node=n0");
  CHECK(line(JobEnded{A}) == "ended job=A");
  CHECK(line(ParticipantJoined{ParticipantId{5}, A, n0, ProcessId{7}, {}}) ==
        "joined job=A node=n0 participant=5 process=7 devices=none");
  CHECK(line(ParticipantLeft{ParticipantId{5}, true}) == "left participant=5 died=yes");
  CHECK(line(MemberSeen{A, n0, fact}) ==
        "seen job=A node=n0 member=11 residency=saved bytes=10 residue=2 devices=n0:1");
  CHECK(line(MemberDied{MemberId{11}}) == "died member=11");
  CHECK(line(MemberCleared{MemberId{11}}) == "cleared member=11");
  CHECK(line(AcquireRequested{RequestId{9}, ParticipantId{5}, true, 4}) ==
        "acquire request=9 participant=5 try=yes ticket=4");
  CHECK(line(AcquireCancelled{RequestId{9}}) == "cancel request=9");
  CHECK(line(Yielded{ParticipantId{5}, {1, 2}}) == "yield participant=5 epoch=1.2");
  CHECK(line(GrantReported{JobId{1}, NodeId{2}, {1, 2}, {{NodeId{2}, 0}}}) ==
        "granted job=A node=n2 epoch=1.2 devices=n2:0");
  CHECK(line(SliceReported{ParticipantId{5}, {1, 2}}) == "in-slice participant=5 epoch=1.2");
  CHECK(line(OrderOverdue{OperationId{3}}) == "overdue op=3");
  CHECK(line(TimePassed{}) == "time-passed");
  CHECK(line(GroupPaused{GroupId{1}, true}) == "pause group=1");
  CHECK(line(GroupPaused{GroupId{1}, false}) == "resume group=1");
  CHECK(line(JobEvicted{A, true}) == "evict job=A kill=yes");
  CHECK(line(FaultCleared{A}) == "clear-fault job=A");
}

TEST_CASE("an outcome tells its cause, its bytes and where it left each member",
          "[core][describe]") {
  Outcome o{.code = Outcome::Code::Failed, .cause = Cause::DriverError, .need = 8, .free = 4};
  o.lasting = true;
  o.bytes = 16;
  o.detail = "call 3 returned 304";
  o.members = {{MemberId{11}, Residency::Faulted, 0, 0, {}}};
  CHECK(line(OrderFinished{OperationId{3}, o}) ==
        "finished op=3 code=failed cause=driver-error need=8 free=4 lasting=yes bytes=16 member=11 "
        "residency=faulted detail=\"call 3 returned 304\"");
}

TEST_CASE("without names, ids read as numbers", "[core][describe]") {
  CHECK(describe(Event{JobEnded{A}}) == "ended job=1");
  CHECK(describe(Action{Release{OperationId{4}, n0, A}}) == "release node=0 job=1 op=4");
  CHECK(describe(Action{AskToYield{n0, A, {1, 2}}}) == "ask-to-yield node=0 job=1 epoch=1.2");
  CHECK(describe(Event{GroupPaused{GroupId{3}, true}}) == "pause group=3");
}

TEST_CASE("every cause, fault and phase has a word of its own", "[core][describe]") {
  CHECK(text(Cause::Drained) == std::string("drained"));
  CHECK(text(Cause::NoRecord) == std::string("no-record"));
  CHECK(text(Cause::Forbidden) == std::string("forbidden"));
  CHECK(text(Cause::Stale) == std::string("stale"));
  CHECK(text(FaultKind::Grant) == std::string("grant"));
  CHECK(text(Notice::Kind::JoinRefused) == std::string("join-refused"));
  CHECK(text(JobPhase::Broken) == std::string("broken"));
  CHECK(text(Outcome::Code::Gone) == std::string("gone"));
}
