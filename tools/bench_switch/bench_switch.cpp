// Two jobs that span N nodes change places: how the time grows with N, with slow nodes and with
// fast ones.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench_common/client_turns.h"
#include "bench_common/cluster.h"
#include "bench_common/figures.h"
#include "bench_common/floor.h"
#include "bench_common/phases.h"
#include "bench_common/run.h"

using namespace ts::bench;

namespace {

constexpr auto kDelay = std::chrono::milliseconds(50);

struct Row {
  int nodes = 0;
  double slow = 0, fast = 0, floor = 0;  // medians, ms
  std::map<std::string, int> orders;     // on each node
};

// A switch of one node is over in a millisecond: it takes many to see more than the machine's mood.
int enoughRounds(int nodes) {
  return std::max(50, 640 / nodes);
}

double milliseconds(const std::vector<double>& us) {
  return spreadOf(us).median / 1000;
}

// Two jobs on all nodes of a cluster.
struct Pair {
  Pair(const std::string& programs, int nodes, std::chrono::milliseconds delay)
      : cluster({.programs = programs, .nodes = nodes, .orderDelay = delay}),
        a([this] { return clientTurns(cluster.sockets(), {.name = "a"}); }),
        b([this] { return clientTurns(cluster.sockets(), {.name = "b"}); }) {}

  std::vector<double> pass(int rounds) {
    return passBetween(a, b, rounds, [this] { cluster.untilQueued("bench", 1); });
  }

  Cluster cluster;
  Player a, b;
};

// What else the machine does meets both: they take turns, a few switches each.
Row measureFast(const std::string& programs, int nodes, int rounds) {
  constexpr int kProbe = 3, kBatch = 10;
  Pair ours(programs, nodes, std::chrono::milliseconds(0));
  ours.pass(kProbe);
  const Orders before = ours.cluster.orders();
  ours.pass(kProbe);
  const auto orders = perSwitch(before, ours.cluster.orders(), kProbe + 3, nodes);

  Floor floor(nodes, phasesOf(orders));
  auto raw = [&floor] { return floor.turns(); };
  Player c(raw), d(raw);
  std::vector<double> us, bare;
  for (int left = rounds; left > 0; left -= kBatch) {
    append(us, ours.pass(std::min(left, kBatch)));
    append(bare, passBetween(c, d, std::min(left, kBatch), [] {}));
  }
  return {.nodes = nodes, .fast = milliseconds(us), .floor = milliseconds(bare), .orders = orders};
}

Row measure(const std::string& programs, int nodes, int rounds, int slowRounds) {
  Row row = measureFast(programs, nodes, rounds);
  Pair slow(programs, nodes, kDelay);
  slow.pass(1);
  row.slow = milliseconds(slow.pass(slowRounds));
  return row;
}

void print(const std::vector<Row>& rows) {
  std::printf("switch: two jobs over N nodes of one device each, backend none; medians in ms\n");
  std::printf("%5s %22s %14s %14s %8s %8s\n", "N", "(a) 50 ms in an order", "(b) no delay",
              "raw sockets", "ratio", "orders");
  for (const Row& r : rows) {
    std::printf("%5d %22.1f %14.3f %14.3f %8.2f %8d\n", r.nodes, r.slow, r.fast, r.floor,
                r.fast / r.floor, total(r.orders) * r.nodes);
  }
  const Row &first = rows.front(), &last = rows.back();
  std::printf("(a) T(%d) - T(%d) = %.1f ms\norders on each node:", last.nodes, first.nodes,
              last.slow - first.slow);
  for (const auto& [verb, count] : last.orders) std::printf(" %d %s", count, verb.c_str());
  std::printf("\n");
}

void printJson(const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& r : rows) {
    list.push_back({{"nodes", r.nodes},
                    {"delayed_ms", r.slow},
                    {"ms", r.fast},
                    {"floor_ms", r.floor},
                    {"ratio", r.fast / r.floor},
                    {"orders", r.orders},
                    {"orders_total", total(r.orders) * r.nodes}});
  }
  const nlohmann::json out = {{"bench", "switch"},
                              {"order_delay_ms", kDelay.count()},
                              {"delayed_growth_ms", rows.back().slow - rows.front().slow},
                              {"rows", list}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Two jobs over N nodes change places.", "bench switch");
  std::string programs;
  std::vector<int> sizes = {1, 4, 16, 64};
  int rounds = 0, slowRounds = 15;
  bool asJson = false;
  app.add_option("--programs", programs, "the build folder")->required();
  app.add_option("--nodes", sizes, "numbers of nodes")->delimiter(',');
  app.add_option("--rounds", rounds,
                 "switches to measure without delay (default: 640 / nodes, at least 50)");
  app.add_option("--slow-rounds", slowRounds, "switches to measure with delay");
  app.add_flag("--json", asJson, "one JSON object instead of a table");
  app.footer(
      "Examples:\n  tools/bench switch --json\n  tools/bench switch --nodes 1,4 --rounds 10");
  return runBench(app, argc, argv, [&] {
    std::vector<Row> rows;
    for (int nodes : sizes) {
      rows.push_back(
          measure(programs, nodes, rounds > 0 ? rounds : enoughRounds(nodes), slowRounds));
    }
    asJson ? printJson(rows) : print(rows);
  });
}
