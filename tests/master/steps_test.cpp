// What the Slurm plugin asks through a node before tasks start, and while they wait.
#include "master/house.h"

using namespace ts;
using namespace ts::test;
using Catch::Contains;

namespace {

struct Admission {
  Outcome outcome;
  std::vector<std::string> environment;
};

Admission admit(MasterHouse& house, ScriptedNode& node, const std::string& group,
                const std::string& job, std::vector<std::uint32_t> devices = {0},
                std::uint32_t uid = 1000, std::uint32_t gang = 0) {
  auto request = node.session().admitRequest();
  toWire({group, job}, request.initSpec().initKey());
  request.getSpec().setUid(uid);
  request.getSpec().setGang(gang);
  auto list = request.initDevices(unsigned(devices.size()));
  for (unsigned i = 0; i < devices.size(); ++i) list.set(i, devices[i]);
  auto response = request.send().wait(house.loop.scope);
  Admission out{fromWire(response.getOutcome(), NodeId{}), {}};
  for (auto line : response.getEnvironment()) out.environment.push_back(text(line));
  return out;
}

struct Look {
  std::uint32_t before, missing;
  std::string text;
};

Look outlook(MasterHouse& house, ScriptedNode& node, const std::string& group,
             const std::string& job) {
  auto request = node.session().outlookRequest();
  toWire({group, job}, request.initKey());
  auto response = request.send().wait(house.loop.scope);
  return {response.getBefore(), response.getMissing(), text(response.getText())};
}

}  // namespace

TEST_CASE("a step is told its group's variables, and nothing has changed", "[master]") {
  MasterConfig config;
  config.groups["rl"].environment = {{"NCCL_DEBUG", "WARN"}, {"A", "b c"}};
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  auto known = admit(house, node, "rl", "17.0");
  CHECK(known.outcome.ok());
  CHECK(known.environment == std::vector<std::string>{"A=b c", "NCCL_DEBUG=WARN"});
  CHECK(admit(house, node, "on-demand", "17.0").outcome.ok());
  CHECK(house.shell().directory().jobs().empty());
  CHECK(house.shell().directory().groups() == 0);
}

TEST_CASE("a step is refused for what a join would be refused for", "[master]") {
  MasterConfig config;
  config.anyGroup = false;
  config.groups["rl"] = {};
  config.groups["closed"].users = {4242};
  config.groups["other"] = {};
  MasterHouse house(config);
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  auto refused = [&](auto... wish) { return admit(house, node, wish...).outcome; };
  CHECK(refused("nope", "A").cause == Cause::UnknownGroup);
  CHECK(refused("closed", "A").cause == Cause::Forbidden);
  CHECK_THAT(refused("rl", "A", std::vector<std::uint32_t>{9}).detail, Contains("no device 9"));
  REQUIRE(node.join("rl", "A", 1).ok());
  auto owned = refused("other", "B");
  CHECK(owned.cause == Cause::DeviceOwned);
  CHECK(owned.detail ==
        "device 0 of node n1 is claimed by job rl/A, and a device belongs to one group");
  CHECK(refused("rl", "B").ok());
  CHECK(refused("rl", "A", std::vector<std::uint32_t>{0}, 1001u).cause == Cause::Forbidden);
  CHECK(refused("rl", "A", std::vector<std::uint32_t>{0}, 1000u, 4u).cause == Cause::Unsupported);
}

TEST_CASE("a job that waits is told who is before it", "[master]") {
  MasterHouse house;
  ScriptedNode node(house.loop, "n1");
  node.connect(house.address);
  CHECK_THAT(outlook(house, node, "rl", "A").text, Contains("does not know job rl/A"));
  node.join("rl", "A", 1);
  node.join("rl", "B", 2);
  node.acquire(1, 100);
  house.until([&] { return node.entered(1); });
  node.acquire(2, 200);
  REQUIRE(house.phase("rl", "B") == JobPhase::Waiting);
  auto first = outlook(house, node, "rl", "B");
  CHECK(first.before == 1);
  CHECK(first.missing == 0);
  CHECK_THAT(first.text, Contains("before it is job rl/A, holding for 0 s"));
  node.yield(1);
  house.until([&] { return node.entered(2); });
  node.acquire(1, 101);
  REQUIRE(house.phase("rl", "A") == JobPhase::Waiting);
  CHECK_THAT(outlook(house, node, "rl", "A").text,
             Contains("at 0 s a turn so far its own may come in about 0 s"));
}
