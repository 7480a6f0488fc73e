// What one acquire + yield costs the core, with groups of 10 and of 1,000 jobs that all wait for
// the same devices: 10,000 jobs in all. Prints microseconds; asserts nothing about time.
#include <chrono>
#include <cstdio>
#include <vector>

#include "core/cluster.h"

using namespace ts;

namespace {

// Obeys what matters here: grants are answered, so that epochs are known and orders end.
struct Shell {
  Cluster cluster{ClusterConfig{}};
  Actions out;
  Instant now{};
  std::vector<Epoch> epochs;

  void send(const Event& event) {
    out.clear();
    cluster.step(now, event, out);
    Actions orders;
    orders.swap(out);
    for (const Action& a : orders) {
      if (const auto* grant = std::get_if<Grant>(&a)) {
        epochs[std::size_t(grant->job)] = grant->epoch;
        cluster.step(now, OrderFinished{grant->operation, {}}, out);
      }
      if (const auto* end = std::get_if<EndSlice>(&a)) {
        cluster.step(now, OrderFinished{end->operation, {}}, out);
      }
    }
  }
};

double cost(unsigned jobs, unsigned perGroup) {
  Shell shell;
  shell.epochs.resize(jobs + 1);
  NodeId node{1};
  Devices all;
  for (unsigned i = 0; i < jobs / perGroup; ++i) all.push_back({node, i});
  shell.send(NodeJoined{node, all});
  shell.send(NodeReported{node});
  std::uint64_t request = 0;
  for (unsigned j = 1; j <= jobs; ++j) {
    unsigned group = (j - 1) / perGroup;
    if ((j - 1) % perGroup == 0) shell.cluster.configure(GroupId{group + 1}, {});
    shell.send(JobDeclared{JobId{j}, GroupId{group + 1}, {}});
    shell.send(ParticipantJoined{ParticipantId{j}, JobId{j}, node, ProcessId{j}, {{node, group}}});
    shell.send(AcquireRequested{RequestId{++request}, ParticipantId{j}});
  }
  // Whoever holds yields and asks again: the next is granted, all others go on waiting.
  constexpr unsigned kRounds = 200000;
  unsigned groups = jobs / perGroup;
  std::vector<unsigned> turn(groups, 0);
  auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < kRounds; ++i) {
    unsigned group = i % groups;
    unsigned job = group * perGroup + turn[group] + 1;
    turn[group] = (turn[group] + 1) % perGroup;
    shell.now += std::chrono::microseconds(1);
    shell.send(Yielded{ParticipantId{job}, shell.epochs[job]});
    shell.send(AcquireRequested{RequestId{++request}, ParticipantId{job}});
  }
  std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / kRounds;
}

}  // namespace

int main() {
  double small = cost(10000, 10);
  double large = cost(10000, 1000);
  std::printf(
      "acquire + yield, 10000 jobs: %.2f us in groups of 10, %.2f us in groups of 1000 (x %.2f)\n",
      small, large, large / small);
}
