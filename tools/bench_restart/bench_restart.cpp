// A master that is killed under a fleet: when all nodes and waiters are back, and whether the order
// is what it was.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench_common/client_turns.h"
#include "bench_common/cluster.h"
#include "bench_common/crowd.h"
#include "bench_common/figures.h"
#include "bench_common/run.h"
#include "bench_restart/raw_return.h"

using namespace ts::bench;

namespace {

struct Plan {
  std::string programs;
  int nodes = 500;
  int jobs = 2000;
  int groups = 20;

  int nodesInGroup() const { return nodes / groups; }
};

struct Result {
  double masterUp = 0, nodesBack = 0, waitersBack = 0;  // ms from the kill
  double firstGrant = 0, drained = 0;                   // ms from one yield, from all the others
  double masterCpu = 0;                                 // ms until all were back
  double floor = 0;                                     // ms
  int turnedAway = 0;                                   // connections that the master has ended
  bool sameOrder = false, sameHolders = false, grantedInOrder = false;
  std::uint64_t bytes = 0;  // of the master

  bool good() const { return sameOrder && sameHolders && grantedInOrder && turnedAway == 0; }
};

// Who waits and who holds, by group.
struct Places {
  std::map<std::string, std::vector<std::string>> queue, holders;
};

std::string groupName(int group) {
  return "group-" + std::to_string(group);
}

double msSince(std::int64_t then) {
  return double(nowNs() - then) / 1e6;
}

// A group has nodes of its own and a holder on all of these; its waiters are on one node each, by
// turns, so that the order in which they wait goes across nodes.
class Bench {
public:
  explicit Bench(const Plan& plan)
      : plan_(plan),
        cluster_({.programs = plan.programs, .nodes = plan.nodes, .masterLog = "info"}),
        crowd_(plan.jobs, [this](int who) { return join(who); }) {
    for (int g = 0; g < plan_.groups; ++g) startHolder(g);
    crowd_.growTo(plan_.jobs);
    for (int who = 0; who < plan_.jobs; ++who) crowd_.begin(who);
    cluster_.untilQueued(plan_.jobs);
  }

  Result measure() {
    Result result;
    const Places before = places();
    restart(result);
    const Places after = places();
    result.sameOrder = before.queue == after.queue;
    result.sameHolders = before.holders == after.holders;
    result.bytes = residentBytes(cluster_.masterPid());
    goOnFrom(before, result);
    for (const char* verb :
         {"refused", "node-refused", "hang-up", "connection-failed", "accept-failed"})
      result.turnedAway += cluster_.masterSaid(verb);
    result.floor = rawReturn(plan_.nodes, kReportBytes);
    return result;
  }

private:
  // Of one node: its part of a holder and four waiters.
  static constexpr int kReportBytes = 2048;

  void restart(Result& result) {
    const std::int64_t killed = nowNs();
    cluster_.restartMaster();
    result.masterUp = msSince(killed);
    cluster_.untilMasterSaid("reported", plan_.nodes);
    result.nodesBack = msSince(killed);
    cluster_.untilQueued(plan_.jobs);
    result.waitersBack = msSince(killed);
    result.masterCpu = cpuSeconds(cluster_.masterPid()) * 1000;
  }

  // One group's turn, then all the others', to the last waiter.
  void goOnFrom(const Places& before, Result& result) {
    const std::int64_t yielded = holders_.front()->yield();
    std::int64_t first = INT64_MAX;
    for (int who = 0; who < plan_.jobs; who += plan_.groups) {
      crowd_.finish(who);
      first = std::min(first, crowd_.heldAt(who));
    }
    result.firstGrant = double(first - yielded) / 1e6;
    const std::int64_t others = nowNs();
    for (int g = 1; g < plan_.groups; ++g) holders_[std::size_t(g)]->yield();
    for (int who = 0; who < plan_.jobs; ++who) crowd_.finish(who);
    result.drained = msSince(others);
    result.grantedInOrder = std::ranges::all_of(
        before.queue, [this](const auto& group) { return grantedInOrder(group.second); });
  }

  // On each node: waiters of different nodes are in nobody's way.
  bool grantedInOrder(const std::vector<std::string>& queue) const {
    std::map<int, std::int64_t> last;
    for (const std::string& job : queue) {
      const int who = std::stoi(job.substr(job.rfind('-') + 1));
      const std::int64_t held = crowd_.heldAt(who);
      if (held < std::exchange(last[nodeOf(who)], held)) return false;
    }
    return true;
  }

  int nodeOf(int who) const {
    const int place = who / plan_.groups % plan_.nodesInGroup();
    return who % plan_.groups * plan_.nodesInGroup() + place;
  }

  std::unique_ptr<Turns> join(int who) {
    return clientTurns(
        {cluster_.sockets()[std::size_t(nodeOf(who))]},
        {.group = groupName(who % plan_.groups), .name = "job-" + std::to_string(who)});
  }

  void startHolder(int group) {
    const auto first = cluster_.sockets().begin() + group * plan_.nodesInGroup();
    const std::vector<std::string> sockets(first, first + plan_.nodesInGroup());
    holders_.push_back(std::make_unique<Player>(
        [&] { return clientTurns(sockets, {.group = groupName(group), .name = "holder"}); }));
    holders_.back()->ask();
    holders_.back()->held();
  }

  Places places() const {
    Places all;
    const auto status = nlohmann::json::parse(cluster_.status());
    for (const auto& group : status["groups"]) {
      all.queue[group["name"]] = group["queue"];
      all.holders[group["name"]] = group["holders"];
    }
    return all;
  }

  Plan plan_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Player>> holders_;
  Crowd crowd_;
};

const char* sameOr(bool same, const char* otherwise) {
  return same ? "the same" : otherwise;
}

void print(const Plan& plan, const Result& r) {
  std::printf("restart: %d nodes, each a tsnoded; %d jobs that wait in %d groups; backend none\n",
              plan.nodes, plan.jobs, plan.groups);
  std::printf(
      "  ms after the kill: %.0f the next master listens, %.0f all nodes are back, %.0f all "
      "waiters are back\n",
      r.masterUp, r.nodesBack, r.waitersBack);
  std::printf("  nodes back %.0f ms after it listens; as many raw sockets: %.0f ms\n",
              r.nodesBack - r.masterUp, r.floor);
  std::printf("  order: %s; holders: %s; granted in that order: %s; connections turned away: %d\n",
              sameOr(r.sameOrder, "CHANGED"), sameOr(r.sameHolders, "CHANGED"),
              r.grantedInOrder ? "yes" : "NO", r.turnedAway);
  std::printf("  first grant %.2f ms after a yield; all the others had their turn within %.0f ms\n",
              r.firstGrant, r.drained);
  std::printf("  the master: %.0f ms of CPU until all were back, %.1f MiB\n", r.masterCpu,
              double(r.bytes) / (1 << 20));
}

void printJson(const Plan& plan, const Result& r) {
  const nlohmann::json out = {{"bench", "restart"},
                              {"nodes", plan.nodes},
                              {"jobs", plan.jobs},
                              {"groups", plan.groups},
                              {"master_up_ms", r.masterUp},
                              {"nodes_back_ms", r.nodesBack},
                              {"waiters_back_ms", r.waitersBack},
                              {"floor_ms", r.floor},
                              {"same_order", r.sameOrder},
                              {"same_holders", r.sameHolders},
                              {"granted_in_order", r.grantedInOrder},
                              {"turned_away", r.turnedAway},
                              {"first_grant_ms", r.firstGrant},
                              {"drained_ms", r.drained},
                              {"master_cpu_ms", r.masterCpu},
                              {"master_bytes", r.bytes}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A master that is killed under a fleet.", "bench restart");
  Plan plan;
  bool asJson = false;
  app.add_option("--programs", plan.programs, "the build folder")->required();
  app.add_option("--nodes", plan.nodes, "node daemons")->check(CLI::Range(1, 1000));
  app.add_option("--jobs", plan.jobs, "jobs that wait, each a process")
      ->check(CLI::Range(1, 10000));
  app.add_option("--groups", plan.groups, "groups, each with as many nodes of its own")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", asJson, "one JSON object instead of a text");
  app.footer(
      "Examples:\n  tools/bench restart --json\n  tools/bench restart --nodes 20 --jobs 80 "
      "--groups 4");
  return runBench(app, argc, argv, [&] {
    if (plan.nodes < plan.groups) die("more groups than nodes: each group has a node at least");
    Bench bench(plan);
    const Result result = bench.measure();
    asJson ? printJson(plan, result) : print(plan, result);
    if (!result.good()) die("somebody lost a place, or was turned away");
  });
}
