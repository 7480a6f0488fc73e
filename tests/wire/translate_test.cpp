#include "wire/translate.h"

#include <capnp/message.h>

#include <catch2/catch.hpp>

#include "wire/version.h"

using namespace ts;

namespace {

template <class Root, class Value>
auto overTheWire(const Value& value) {
  capnp::MallocMessageBuilder message;
  toWire(value, message.initRoot<Root>());
  return fromWire(message.getRoot<Root>().asReader());
}

const NodeId kNode{3};

}  // namespace

TEST_CASE("values come back from the wire as they went", "[wire]") {
  CHECK(overTheWire<wire::JobKey>(JobName{"rl", "417.0"}) == JobName{"rl", "417.0"});
  CHECK(overTheWire<wire::Generation>(Generation{9, ~0ull}) == Generation{9, ~0ull});
  CHECK(overTheWire<wire::Epoch>(Epoch{2, 1ull << 40}) == Epoch{2, 1ull << 40});
}

TEST_CASE("every residency comes back", "[wire]") {
  for (int i = 0; i <= int(Residency::Faulted); ++i)
    CHECK(fromWire(toWire(Residency(i))) == Residency(i));
}

TEST_CASE("what a newer peer may say is read as the value that promises least", "[wire]") {
  CHECK(fromWire(wire::Residency(4711)) == Residency::Faulted);
  CHECK(causeFromWire(4711) == Cause::DriverError);
}

TEST_CASE("an outcome comes back with its facts, on the node that told them", "[wire]") {
  Outcome out{.code = Outcome::Code::Refused,
              .cause = Cause::NoHostMemory,
              .need = 12,
              .free = 10,
              .lasting = true,
              .detail = "needs 12 B, has 10 B",
              .bytes = 5};
  out.members.push_back({.member = MemberId{8},
                         .residency = Residency::Saved,
                         .bytes = 100,
                         .residue = 1,
                         .devices = {{kNode, 0}, {kNode, 2}}});
  capnp::MallocMessageBuilder message;
  toWire(out, message.initRoot<wire::Outcome>());
  Outcome in = fromWire(message.getRoot<wire::Outcome>().asReader(), kNode);
  CHECK(in.code == out.code);
  CHECK(in.cause == out.cause);
  CHECK(in.need == 12);
  CHECK(in.free == 10);
  CHECK(in.lasting);
  CHECK(in.detail == out.detail);
  CHECK(in.bytes == 5);
  REQUIRE(in.members.size() == 1);
  CHECK(in.members[0].member == MemberId{8});
  CHECK(in.members[0].residency == Residency::Saved);
  CHECK(in.members[0].bytes == 100);
  CHECK(in.members[0].residue == 1);
  CHECK(in.members[0].devices == out.members[0].devices);
}

TEST_CASE("FF-A20: an outcome with too many words keeps its result and loses words", "[wire]") {
  Outcome out{.code = Outcome::Code::Failed, .cause = Cause::DriverError, .bytes = 5};
  for (int i = 0; i < 1 << 20; ++i) out.detail += "ä";
  capnp::MallocMessageBuilder message;
  toWire(out, message.initRoot<wire::Outcome>());
  Outcome in = fromWire(message.getRoot<wire::Outcome>().asReader(), kNode);
  CHECK(in.code == Outcome::Code::Failed);
  CHECK(in.bytes == 5);
  CHECK(in.detail.starts_with("ää"));
  CHECK(in.detail.ends_with("ä…"));
  CHECK(in.detail.size() < 5000);
}

TEST_CASE("devices are sorted and named once, whatever the peer sent", "[wire]") {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::MemberFact>().initDevices(4);
  for (unsigned i = 0; i < 4; ++i) list.set(i, i == 3 ? 7 : 3 - i);
  CHECK(devicesFromWire(list.asReader(), kNode) ==
        Devices{{kNode, 1}, {kNode, 2}, {kNode, 3}, {kNode, 7}});
}

TEST_CASE("the highest version that both speak is chosen", "[wire]") {
  CHECK(commonVersion({1, 3}, {2, 5}) == 3);
  CHECK(commonVersion({1, 1}, {1, 1}) == 1);
  CHECK_FALSE(commonVersion({1, 1}, {2, 3}));
  CHECK(describe(VersionRange{2, 3}) == "2 to 3");
}
