#include "node/fence.h"

#include <catch2/catch.hpp>

using namespace ts;
using namespace ts::node;

namespace {

const JobName kA{"rl", "a"};
const JobName kB{"rl", "b"};
using Kind = Fence::Decision::Kind;

OperationId op(std::uint64_t n) {
  return OperationId{n};
}

}  // namespace

TEST_CASE("FF-A20: an order is obeyed once and then answered from the record", "[node]") {
  MemoryRecords records;
  Fence fence(records);
  CHECK(fence.admit(kA, op(5)).kind == Kind::Obey);
  CHECK(fence.admit(kA, op(5)).kind == Kind::Running);
  fence.finished(kA, op(5),
                 {.code = Outcome::Code::Failed,
                  .cause = Cause::NotReleased,
                  .need = 7,
                  .lasting = true,
                  .detail = "two\nlines",
                  .bytes = 9});
  auto again = fence.admit(kA, op(5));
  CHECK(again.kind == Kind::Repeated);
  CHECK(again.outcome.cause == Cause::NotReleased);
  CHECK(again.outcome.need == 7);
  CHECK(again.outcome.lasting);
  CHECK(again.outcome.bytes == 9);
  CHECK(again.outcome.detail == "two\nlines");
}

TEST_CASE("ids grow per job, not over all", "[node]") {
  MemoryRecords records;
  Fence fence(records);
  CHECK(fence.admit(kA, op(5)).kind == Kind::Obey);
  CHECK(fence.admit(kB, op(3)).kind == Kind::Obey);
  auto stale = fence.admit(kA, op(4));
  CHECK(stale.kind == Kind::Stale);
  CHECK(stale.last == op(5));
  CHECK(fence.admit(kA, op(6)).kind == Kind::Obey);
}

TEST_CASE("after a restart what ended is known, and what ran is obeyed anew", "[node]") {
  MemoryRecords records;
  {
    Fence fence(records);
    fence.admit(kA, op(9));
    fence.finished(kA, op(9), {});
    fence.admit(kA, op(10));
  }
  Fence fence(records);
  CHECK(fence.admit(kA, op(9)).outcome.ok());
  CHECK(fence.admit(kA, op(8)).kind == Kind::Stale);
  CHECK(fence.admit(kA, op(10)).kind == Kind::Obey);
  CHECK(fence.admit(kA, op(10)).kind == Kind::Running);
  fence.finished(kA, op(10), {});
  CHECK(Fence(records).admit(kA, op(10)).kind == Kind::Repeated);
}

TEST_CASE("a new generation counts anew, and an ended job leaves nothing", "[node]") {
  MemoryRecords records;
  Fence fence(records);
  fence.admit(kA, op(9));
  fence.newGeneration();
  CHECK(fence.admit(kA, op(1)).kind == Kind::Obey);
  fence.forget(kA);
  CHECK(records.all().empty());
}

TEST_CASE("the record is bounded, and never drops what runs", "[node]") {
  MemoryRecords records;
  Fence fence(records);
  fence.admit(kA, op(1));
  for (std::uint64_t i = 2; i < 500; ++i) {
    fence.admit(kA, op(i));
    fence.finished(kA, op(i), {});
  }
  CHECK(fence.admit(kA, op(1)).kind == Kind::Running);
  fence.finished(kA, op(1), {});
  CHECK(records.all().size() <= 65);
}

TEST_CASE("a slice that a later order has ended is known to be over, also after a restart",
          "[node]") {
  MemoryRecords records;
  {
    Fence fence(records);
    fence.admit(kA, op(1));  // the grant, under which the daemon is killed
    fence.admit(kA, op(2));
    fence.finished(kA, op(2), {}, Epoch{1, 7});
    CHECK(fence.hasEnded(kA, op(1), {1, 7}));
  }
  Fence fence(records);
  CHECK(fence.look(kA, op(1)).kind == Kind::Obey);
  CHECK(fence.look(kA, op(2)).outcome.ok());
  CHECK(fence.hasEnded(kA, op(1), {1, 7}));
  CHECK_FALSE(fence.hasEnded(kA, op(1), {1, 8}));
  CHECK_FALSE(fence.hasEnded(kA, op(3), {1, 7}));
  CHECK_FALSE(fence.hasEnded(kB, op(1), {1, 7}));
}
