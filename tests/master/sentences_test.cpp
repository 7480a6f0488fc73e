#include "master/sentences.h"

#include <catch2/catch.hpp>

#include "core/mention.h"

using namespace ts;

TEST_CASE("a person reads names where the core has numbers", "[master]") {
  Directory directory;
  NodeRecord& node = directory.node("n1");
  JobRecord& job = directory.add({"rl", "a"}, 1000, {});
  auto& member = directory.addMember(node, 17, job, 4711);
  auto& participant = directory.addParticipant(node, 5, job, 1);
  const GroupId group = directory.group("rl");

  CHECK(withNames(directory, "a call on " + mention(member.id)) ==
        "a call on process 4711 of node n1");
  CHECK(withNames(directory, mention(node.id)) == "node n1");
  CHECK(withNames(directory, mention(participant.id)) == "a process of node n1");
  participant.pid = 4712;
  CHECK(withNames(directory, mention(participant.id)) == "process 4712 of node n1");
  CHECK(withNames(directory, mention(group) + " is not configured") ==
        "group rl is not configured");
  CHECK(withNames(directory, mention(member.id) + ", " + mention(Device{node.id, 3})) ==
        "process 4711 of node n1, device 3 of node n1");
  CHECK(withNames(directory, "3 of 4 have joined") == "3 of 4 have joined");

  directory.remove(member);
  CHECK(withNames(directory, "a call on member #1") == "a call on a process that has ended");
  CHECK(withNames(directory, "node #99") == "node ?");
}
