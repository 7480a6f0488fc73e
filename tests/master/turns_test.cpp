// Turns through a real master on a real loop, with scripted nodes.
#include "master/house.h"

using namespace ts;
using namespace ts::test;

TEST_CASE("P25, P50: a lone job is granted at once and may yield and acquire again", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  CHECK(node.join("rl", "A", 1).ok());
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  Epoch first = node.epoch(1);
  node.yield(1);
  node.acquire(1, 101);
  house.until([&] { return node.entered(1); });
  CHECK(node.epoch(1) > first);
}

TEST_CASE("P40, P53: the second job gets the turn when the first yields it", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(2, 200);
  CHECK(house.phase("rl", "B") == JobPhase::Waiting);
  CHECK_FALSE(node.entered(2));
  node.yield(1);
  house.until([&] { return node.entered(2); });
  CHECK(house.phase("rl", "B") == JobPhase::Holding);
}

TEST_CASE("P23, P24: a switch moves one job out and the other in, in order", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.seeMember(11, "rl", "A", 1000);
  node.acquire(2, 200);
  node.yield(1);
  house.until([&] { return node.entered(2); });
  CHECK(node.residency(11) == Residency::Saved);
  CHECK(node.ordered("prepare B") == 1);
  CHECK(node.ordered("quiesce A") == 1);
  CHECK(node.ordered("save A") == 1);
  CHECK(node.ordered("grant B") == 1);

  node.seeMember(12, "rl", "B", 2000);
  node.acquire(1, 101);
  node.yield(2);
  house.until([&] { return node.entered(1); });
  CHECK(node.residency(11) == Residency::Resident);
  CHECK(node.residency(12) == Residency::Saved);
  CHECK(node.ordered("restore A") == 1);
}

TEST_CASE("a job over two nodes is granted on both", "[master]") {
  MasterHouse house;
  ScriptedNode n1(house.loop, "n1"), n2(house.loop, "n2");
  n1.connect(house.address);
  n2.connect(house.address);
  n1.join("rl", "A", 1);
  n2.join("rl", "A", 1);
  n1.acquire(1, 100);
  house.until([&] { return n1.entered(1) && n2.ordered("grant A") == 1; });
  n2.acquire(1, 100);
  house.until([&] { return n2.entered(1); });
  CHECK(n1.epoch(1) == n2.epoch(1));
}

TEST_CASE("a try-acquire of a turn that is taken is refused with its holder", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(2, 200, true);
  house.until([&] { return node.refusals.size() == 1; });
  CHECK(node.refusals[0].request == 200);
  CHECK(node.refusals[0].cause == Cause::Busy);
}

TEST_CASE("P51, P100: a cancelled acquire leaves the queue and is never granted", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(2, 200);
  node.cancel(200);
  node.yield(1);
  CHECK(house.phase("rl", "B") == JobPhase::Idle);
  node.acquire(1, 101);
  house.until([&] { return node.entered(1); });
  CHECK(node.ordered("grant B") == 0);
}

TEST_CASE("FF-D10, P39: a yield with an old epoch changes nothing", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.yieldWith(1, {node.epoch(1).generation, node.epoch(1).counter + 7});
  CHECK(house.phase("rl", "A") == JobPhase::Holding);
}

TEST_CASE("a join that cannot be is refused by name, and leaves nothing behind", "[master]") {
  MasterConfig config;
  config.anyGroup = false;
  config.groups["rl"] = {};
  config.groups["closed"].users = {4242};
  config.groups["other"] = {};
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);

  Outcome unknown = node.join("nope", "A", 1);
  CHECK(unknown.cause == Cause::UnknownGroup);
  CHECK_THAT(unknown.detail, Catch::Contains("nope"));
  Outcome forbidden = node.join("closed", "A", 2);
  CHECK(forbidden.cause == Cause::Forbidden);
  CHECK_THAT(forbidden.detail, Catch::Contains("1000"));
  CHECK(node.join("closed", "A", 3, {0}, 4242).ok());
  CHECK_THAT(node.join("rl", "B", 4, {9}).detail, Catch::Contains("no device 9"));
  CHECK_THAT(node.join("rl", "a name with spaces", 5).detail, Catch::Contains("no name"));
  Outcome owned = node.join("other", "C", 6);
  CHECK(owned.cause == Cause::DeviceOwned);
  CHECK(house.shell().directory().jobs().size() == 1);
}

TEST_CASE("a priority that would overflow the queue is refused with its range", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  auto join = [&](std::int32_t priority) {
    auto request = node.session().joinRequest();
    auto spec = request.initSpec();
    toWire(JobName{"rl", "A"}, spec.initKey());
    spec.setPriority(priority);
    request.initParticipant().setId(7);
    request.getParticipant().initDevices(1);
    return fromWire(request.send().wait(house.loop.scope).getOutcome(), NodeId{});
  };
  for (std::int32_t priority : {10'001, -10'001, 2'147'483'647, -2'147'483'647 - 1}) {
    CHECK_THAT(join(priority).detail,
               Catch::Contains("-10000 to 10000") && Catch::Contains(std::to_string(priority)));
  }
  CHECK(join(-10'000).ok());
}

TEST_CASE("FF-F1: a job belongs to the user who brought it", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1, {0}, 1000);
  Outcome outcome = node.join("rl", "A", 2, {0}, 1001);
  CHECK(outcome.cause == Cause::Forbidden);
  CHECK_THAT(outcome.detail, Catch::Contains("1000") && Catch::Contains("1001"));
}

TEST_CASE("P37: a job that has ended everywhere is forgotten", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.leave(1);
  node.endJob("rl", "A");
  CHECK(house.shell().directory().jobs().empty());
  CHECK(house.shell().cluster().jobs().empty());
}

TEST_CASE("a holder is asked to yield when others have waited for the hold limit", "[master]") {
  MasterConfig config;
  config.defaults.holdLimit = std::chrono::milliseconds(5);
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(2, 200);
  house.until([&] { return !node.asked.empty(); });
  CHECK(node.asked == std::vector<std::string>{"A"});
}

TEST_CASE("P20: a switch that was refused for a passing cause is tried again", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.seeMember(11, "rl", "A", 1000);
  node.script["prepare"].push_back({.code = Outcome::Code::Refused,
                                    .cause = Cause::NoHostMemory,
                                    .need = 12,
                                    .free = 10,
                                    .detail = "needs 12 B, the budget is 10 B"});
  node.acquire(2, 200);
  node.yield(1);
  house.until([&] { return node.ordered("prepare B") >= 1; });
  house.until([&] { return node.entered(2); });  // tried again when the cause may have passed
  CHECK(node.ordered("prepare B") == 2);
}

namespace {

// How many switches are timed when "B" gets the turn of "A" and its grant ends so.
std::string timed(const Outcome& granted) {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.seeMember(11, "rl", "A", 1000);
  node.script["grant"].push_back(granted);
  node.acquire(2, 200);
  node.yield(1);
  house.until([&] { return node.ordered("grant B") == 1 && house.shell().orders().open() == 0; });
  std::string text = house.master->metrics.render();
  auto at = text.find("timeslice_phase_seconds_count");
  return at == std::string::npos ? "none" : text.substr(text.find(' ', at) + 1, 1);
}

}  // namespace

TEST_CASE("only a switch whose grant succeeded is timed", "[master]") {
  CHECK(timed({}) == "1");
  CHECK(timed({.code = Outcome::Code::Failed,
               .cause = Cause::DriverError,
               .lasting = true,
               .detail = "unlock says 719"}) == "0");
}
