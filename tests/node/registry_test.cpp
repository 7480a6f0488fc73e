#include "node/registry.h"

#include <catch2/catch.hpp>

#include "node/owner.h"
#include "node/record_text.h"

using namespace ts;
using namespace ts::node;

namespace {

const JobName kA{"rl", "a"};
const JobName kB{"rl", "b"};

Participant participant(Registry& r, const JobName& job, pid_t pid) {
  return {.id = ParticipantId{r.newId()},
          .job = job,
          .process = {.identity = {pid, 5}},
          .devices = {0, 3},
          .joined = true};
}

}  // namespace

TEST_CASE("a later life of the daemon knows what the earlier knew", "[node]") {
  MemoryRecords records;
  ParticipantId pid{};
  MemberId mid{};
  {
    Registry r(records);
    r.setGeneration({4, 0xfedcba9876543210});
    r.addJob(
        {.key = kA, .uid = 1000, .gang = 2, .priority = -3, .keepBroken = true, .backend = "cuda"});
    auto& p = r.add(participant(r, kA, 17));
    pid = p.id;
    p.entered = Epoch{4, 9};
    p.untold = Epoch{4, 8};
    r.record(p);
    auto& m = r.add({.id = MemberId{r.newId()},
                     .job = kA,
                     .process = {.identity = {18, 6}},
                     .residency = Residency::Saved,
                     .bytes = {{0, 100}, {3, 200}},
                     .residue = {{3, 1}}});
    mid = m.id;
    r.setGrant(kA, {{4, 9}, {0, 3}});
    r.setNodes(kA, {"n1", "n2"});
    r.setGathered(kA, Gathering::Yes);
  }
  Registry r(records);
  CHECK(r.generation() == Generation{4, 0xfedcba9876543210});
  REQUIRE(r.job(kA));
  CHECK(r.job(kA)->spec.priority == -3);
  CHECK(r.job(kA)->spec.keepBroken);
  CHECK(r.job(kA)->nodes == std::set<std::string>{"n1", "n2"});
  CHECK(r.job(kA)->gathered == Gathering::Yes);
  CHECK(r.job(kA)->spec.backend == "cuda");
  REQUIRE(r.participant(pid));
  CHECK(r.participant(pid)->entered == Epoch{4, 9});
  CHECK(r.participant(pid)->untold == Epoch{4, 8});
  CHECK(r.participantOf({17, 5}) == r.participant(pid));
  REQUIRE(r.member(mid));
  CHECK(r.member(mid)->total() == 300);
  CHECK(r.member(mid)->residue.at(3) == 1);
  CHECK(r.memberOf({18, 6}) == r.member(mid));
  CHECK(r.savedBytes() == 300);
  REQUIRE(r.grantedTo(3));
  CHECK(*r.grantedTo(3) == kA);
  CHECK(r.newId() > std::uint64_t(mid));
}

TEST_CASE("what is saved is counted while it lives and is away, in each life", "[node]") {
  MemoryRecords records;
  Registry r(records);
  r.addJob({.key = kA, .uid = 1000, .backend = "cuda"});
  auto add = [&](pid_t pid, Residency residency, Bytes bytes) -> Member& {
    return r.add({.id = MemberId{r.newId()},
                  .job = kA,
                  .process = {.identity = {pid, 6}},
                  .residency = residency,
                  .bytes = {{0, bytes}}});
  };
  auto& m = add(18, Residency::Saved, 100);
  auto& other = add(19, Residency::Resident, 20);
  CHECK(r.savedBytes() == 100);
  other.residency = Residency::Saved;
  r.record(other);
  CHECK(r.savedBytes() == 120);
  CHECK(Registry(records).savedBytes() == 120);
  m.bytes = {{0, 70}};
  r.record(m);
  CHECK(r.savedBytes() == 90);
  m.ended = true;
  r.record(m);
  CHECK(r.savedBytes() == 20);
  r.erase(m.id);
  CHECK(r.savedBytes() == 20);
  r.erase(other.id);
  CHECK(r.savedBytes() == 0);
}

TEST_CASE("what an earlier release has left of a job that is gone is forgotten", "[node]") {
  MemoryRecords records;
  records.put("gathered/rl/gone", "yes");
  CHECK(Registry(records).jobs().empty());
  Registry r(records);
  r.addJob({.key = {"rl", "gone"}, .gang = 2, .backend = "none"});
  CHECK(Registry(records).job({"rl", "gone"})->gathered == Gathering::Unknown);
}

TEST_CASE("a device forgets its holder and never its highest epoch", "[node]") {
  MemoryRecords records;
  Registry r(records);
  r.addJob({.key = kA, .backend = "none"});
  r.setGrant(kA, {{1, 5}, {0, 1}});
  r.setGrant(kA, {{1, 6}, {1}});
  CHECK_FALSE(r.grantedTo(0));
  CHECK(*r.grantedTo(1) == kA);
  r.eraseJob(kA);
  CHECK_FALSE(r.grantedTo(1));
  CHECK(Registry(records).highest(1) == Epoch{1, 6});
  CHECK(Registry(records).highest(0) == Epoch{1, 5});
  CHECK(Registry(records).jobs().empty());
}

TEST_CASE("who departed makes room for the same process, and is kept until it is told", "[node]") {
  MemoryRecords records;
  Registry r(records);
  r.addJob({.key = kA, .backend = "none"});
  r.addJob({.key = kB, .backend = "none"});
  auto& first = r.add(participant(r, kA, 17));
  first.departed = true;
  r.record(first);
  CHECK_FALSE(r.participantOf({17, 5}));
  auto& second = r.add(participant(r, kB, 17));
  auto secondId = second.id;
  r.erase(first.id);
  CHECK(r.participantOf({17, 5})->id == secondId);
  CHECK(Registry(records).participantOf({17, 5})->id == secondId);
}

TEST_CASE("ids are never used twice, whatever life the daemon is in", "[node]") {
  MemoryRecords records;
  std::uint64_t last = 0;
  for (int life = 0; life < 3; ++life) {
    Registry r(records);
    for (int i = 0; i < 5000; ++i) {
      auto id = r.newId();
      REQUIRE(id > last);
      last = id;
    }
  }
}

TEST_CASE("a node does not take the jobs of another name along", "[node]") {
  MemoryRecords records;
  CHECK(ownRecords(records, "n1") == "");
  CHECK(ownRecords(records, "n2") == "");  // nothing was there
  Registry(records).addJob({.key = kA, .backend = "none"});
  CHECK(ownRecords(records, "n2") == "");
  auto why = ownRecords(records, "n3");
  for (auto part : {"records in memory", "1 jobs of node \"n2\"", "named \"n3\"", "name = \"n2\"",
                    "own state_dir"})
    CHECK(why.find(part) != std::string::npos);
  Registry(records).eraseJob(kA);
  CHECK(ownRecords(records, "n3") == "");
}
