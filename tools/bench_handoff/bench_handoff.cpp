// A yields, B, already waiting and with nothing to move, runs: real daemons against raw sockets.
#include <CLI/CLI.hpp>
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

constexpr int kBatches = 50;  // ours and the floor take turns, so that a busy machine hits both
constexpr int kProbe = 20;

struct Result {
  Spread ours, floor;
  std::map<std::string, int> orders;
  int rounds;
};

Result measure(const std::string& programs, int rounds) {
  Cluster cluster({.programs = programs});
  auto turnsOf = [&](const char* job) {
    return [&, job] { return clientTurns(cluster.sockets(), {.name = job, .backend = "turns"}); };
  };
  Player a(turnsOf("a")), b(turnsOf("b"));
  auto queued = [&] { cluster.untilQueued("bench", 1); };
  passBetween(a, b, kProbe, queued);
  const Orders before = cluster.orders();
  passBetween(a, b, kProbe, queued);
  const auto orders = perSwitch(before, cluster.orders(), kProbe + 3, 1);

  Floor floor(1, phasesOf(orders));
  auto raw = [&floor] { return floor.turns(); };
  Player c(raw), d(raw);
  std::vector<double> ours, bare;
  for (int i = 0; i < kBatches; ++i) {
    append(ours, passBetween(a, b, rounds / kBatches, queued));
    append(bare, passBetween(c, d, rounds / kBatches, [] {}));
  }
  return {spreadOf(ours), spreadOf(bare), orders, static_cast<int>(ours.size())};
}

// For tools/trace-handoff: says whom to trace, passes the turn when it is told to, says when it is
// over.
void passForTracer(const std::string& programs, int rounds) {
  Cluster cluster({.programs = programs, .heartbeats = false});
  auto turnsOf = [&](const char* job) {
    return [&, job] { return clientTurns(cluster.sockets(), {.name = job, .backend = "turns"}); };
  };
  Player a(turnsOf("a")), b(turnsOf("b"));
  auto queued = [&] { cluster.untilQueued("bench", 1); };
  passBetween(a, b, kProbe, queued);
  std::printf("%d %d\n", int(cluster.masterPid()), int(cluster.nodes().front().pid()));
  std::fflush(stdout);
  std::getchar();
  passBetween(a, b, rounds, queued);
  std::printf("over\n");
  std::fflush(stdout);
  std::getchar();
}

void print(const Result& r) {
  std::printf("handoff: %d rounds, one node, one device, nothing to move\n", r.rounds);
  std::printf("%-14s %12s %12s\n", "", "median us", "p99 us");
  std::printf("%-14s %12.1f %12.1f\n", "timeslice", r.ours.median, r.ours.p99);
  std::printf("%-14s %12.1f %12.1f\n", "raw sockets", r.floor.median, r.floor.p99);
  std::printf("median: %.2f times the floor\norders for a handoff: %d (",
              r.ours.median / r.floor.median, total(r.orders));
  const char* comma = "";
  for (const auto& [verb, count] : r.orders) {
    std::printf("%s%d %s", comma, count, verb.c_str());
    comma = ", ";
  }
  std::printf(")\n");
}

void printJson(const Result& r) {
  nlohmann::json out = {{"bench", "handoff"},
                        {"rounds", r.rounds},
                        {"median_us", r.ours.median},
                        {"p99_us", r.ours.p99},
                        {"floor_median_us", r.floor.median},
                        {"floor_p99_us", r.floor.p99},
                        {"ratio", r.ours.median / r.floor.median},
                        {"orders", r.orders},
                        {"orders_total", total(r.orders)}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("From one job's yield to the next one's turn.", "bench handoff");
  std::string programs;
  int rounds = 2000;
  bool asJson = false, traced = false;
  app.add_option("--programs", programs, "the build folder")->required();
  app.add_option("--rounds", rounds, "handoffs to measure")->check(CLI::Range(kBatches, 1'000'000));
  app.add_flag("--json", asJson, "one JSON object instead of a table");
  app.add_flag("--traced", traced, "for tools/trace-handoff")->group("");
  app.footer("Examples:\n  tools/bench handoff\n  tools/bench handoff --rounds 10000 --json");
  return runBench(app, argc, argv, [&] {
    if (traced) {
      passForTracer(programs, rounds);
      return;
    }
    const Result result = measure(programs, rounds);
    asJson ? printJson(result) : print(result);
  });
}
