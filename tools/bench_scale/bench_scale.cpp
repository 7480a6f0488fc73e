// 10,000 jobs in groups of ten on one master: what it remembers them with, and what a turn costs
// there, beside masters with fewer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "bench_common/client_turns.h"
#include "bench_common/cluster.h"
#include "bench_common/crowd.h"
#include "bench_common/figures.h"
#include "bench_common/floor.h"
#include "bench_common/phases.h"
#include "bench_common/run.h"

using namespace ts::bench;

namespace {

constexpr int kJobsInGroup = 10;

struct Row {
  int groups = 0;
  Spread turn, floor;       // an acquire and its yield, us
  double masterCpu = 0;     // for one, us
  std::uint64_t bytes = 0;  // of the master
  double orders = 0;        // for one
};

struct Plan {
  std::string programs;
  int nodes = 4;
  int turns = 2000;
  std::vector<int> groups = {10, 100, 1000};
};

// One master, its nodes and jobs, and the floor beside them.
class Site {
public:
  Site(const Plan& plan, int groups)
      : plan_(plan),
        groups_(groups),
        cluster_({.programs = plan.programs, .nodes = plan.nodes, .devices = devices()}),
        crowd_(groups * kJobsInGroup, [this](int who) { return join(who); }),
        last_(std::size_t(groups), 0) {
    crowd_.growTo(groups * kJobsInGroup);
    // At first all of a group are on their device; then only the last that had its turn.
    for (int g = 0; g < groups; ++g) crowd_.turn(g * kJobsInGroup);
  }

  void measure(int turns) {
    const Orders before = cluster_.orders();
    const double cpu = cpuSeconds(cluster_.masterPid());
    for (int i = 0; i < turns; ++i) took_.push_back(crowd_.turn(anotherJob()));
    cpu_ += cpuSeconds(cluster_.masterPid()) - cpu;
    if (orders_.empty()) orders_ = perSwitch(before, cluster_.orders(), turns, 1);
    measureFloor(turns);
  }

  Row row() const {
    return {.groups = groups_,
            .turn = spreadOf(took_),
            .floor = spreadOf(bare_),
            .masterCpu = cpu_ * 1e6 / double(took_.size()),
            .bytes = residentBytes(cluster_.masterPid()),
            .orders = double(total(orders_))};
  }

private:
  int devices() const { return (groups_ + plan_.nodes - 1) / plan_.nodes; }

  // Group g is on node g % nodes, on a device of its own.
  std::unique_ptr<Turns> join(int who) {
    const int group = who / kJobsInGroup;
    const std::string& socket = cluster_.sockets()[std::size_t(group % plan_.nodes)];
    return clientTurns({socket}, {.group = "group-" + std::to_string(group),
                                  .name = "job-" + std::to_string(who),
                                  .devices = std::to_string(group / plan_.nodes)});
  }

  // Never the one that had the group's last turn, so that each turn is a whole switch.
  int anotherJob() {
    const int group = std::uniform_int_distribution<int>(0, groups_ - 1)(random_);
    int& last = last_[std::size_t(group)];
    last = (last + 1) % kJobsInGroup;
    return group * kJobsInGroup + last;
  }

  void measureFloor(int turns) {
    Floor floor(1, phasesOf(orders_));
    const auto raw = [&floor] { return floor.turns(); };
    Player a(raw), b(raw);
    append(bare_, passBetween(a, b, turns, [] {}));
  }

  const Plan& plan_;
  const int groups_;
  Cluster cluster_;
  Crowd crowd_;
  std::vector<int> last_;
  std::map<std::string, int> orders_;
  std::vector<double> took_, bare_;  // us
  double cpu_ = 0;                   // of the master in what was measured, s
  std::mt19937 random_{1};
};

// A machine that is not alone changes its pace: the sites take turns, a portion each.
std::vector<Row> measure(const Plan& plan) {
  constexpr int kPortions = 10;
  std::vector<std::unique_ptr<Site>> sites;
  for (int groups : plan.groups) sites.push_back(std::make_unique<Site>(plan, groups));
  for (int i = 0; i < kPortions; ++i) {
    for (auto& site : sites) site->measure(std::max(plan.turns / kPortions, 1));
  }
  std::vector<Row> rows;
  for (auto& site : sites) rows.push_back(site->row());
  return rows;
}

void print(const Plan& plan, const std::vector<Row>& rows) {
  std::printf("scale: %d jobs in each group, %d nodes, backend none, one turn at a time\n",
              kJobsInGroup, plan.nodes);
  std::printf("%7s %7s %14s %10s %16s %14s %12s %8s\n", "groups", "jobs", "turn median us",
              "p99 us", "master's cpu us", "raw sockets us", "master MiB", "orders");
  for (const Row& r : rows) {
    std::printf("%7d %7d %14.1f %10.1f %16.1f %14.1f %12.1f %8.0f\n", r.groups,
                r.groups * kJobsInGroup, r.turn.median, r.turn.p99, r.masterCpu, r.floor.median,
                double(r.bytes) / (1 << 20), r.orders);
  }
  std::printf("a turn at %d groups costs %.2f times that at %d; the master's share %.2f times\n",
              rows.back().groups, rows.back().turn.median / rows.front().turn.median,
              rows.front().groups, rows.back().masterCpu / rows.front().masterCpu);
}

void printJson(const Plan& plan, const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& r : rows) {
    list.push_back({{"groups", r.groups},
                    {"jobs", r.groups * kJobsInGroup},
                    {"median_us", r.turn.median},
                    {"p99_us", r.turn.p99},
                    {"master_cpu_us", r.masterCpu},
                    {"floor_median_us", r.floor.median},
                    {"master_bytes", r.bytes},
                    {"orders_total", r.orders}});
  }
  const nlohmann::json out = {{"bench", "scale"},
                              {"nodes", plan.nodes},
                              {"growth", rows.back().turn.median / rows.front().turn.median},
                              {"master_cpu_growth", rows.back().masterCpu / rows.front().masterCpu},
                              {"rows", list}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Many jobs on one master.", "bench scale");
  Plan plan;
  bool asJson = false;
  app.add_option("--programs", plan.programs, "the build folder")->required();
  app.add_option("--nodes", plan.nodes, "node daemons")->check(CLI::Range(1, 64));
  app.add_option("--turns", plan.turns, "acquires and yields to measure of each");
  app.add_option("--groups", plan.groups, "numbers of groups, each on a master of its own")
      ->delimiter(',');
  app.add_flag("--json", asJson, "one JSON object instead of a table");
  app.footer(
      "Examples:\n  tools/bench scale --json\n  tools/bench scale --groups 10,100 --turns 500");
  return runBench(app, argc, argv, [&] {
    const std::vector<Row> rows = measure(plan);
    asJson ? printJson(plan, rows) : print(plan, rows);
  });
}
