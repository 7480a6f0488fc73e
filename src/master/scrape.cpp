#include "master/scrape.h"

namespace ts {
namespace {

void scrapeGroups(Metrics& metrics, Shell& shell) {
  metrics.clear("timeslice_queue_jobs");
  metrics.clear("timeslice_holders");
  metrics.clear("timeslice_paused");
  for (const GroupView& group : shell.cluster().groups()) {
    Labels labels{{"group", shell.directory().name(group.group)}};
    metrics.gauge("timeslice_queue_jobs", "Jobs that wait.", labels)
        .set(double(group.queue.size()));
    metrics.gauge("timeslice_holders", "Jobs that hold a slice.", labels)
        .set(double(group.holders.size()));
    metrics.gauge("timeslice_paused", "1 while the group is paused.", labels)
        .set(group.paused ? 1 : 0);
  }
}

void scrapeNodes(Metrics& metrics, Shell& shell) {
  for (NodeState state : {NodeState::Named, NodeState::Up, NodeState::Suspect, NodeState::Dead}) {
    int count = 0;
    for (const NodeRecord* node : shell.directory().nodes()) count += node->state == state ? 1 : 0;
    metrics
        .gauge("timeslice_nodes", "Nodes by state; named: known only from reports of others.",
               {{"state", std::string(describe(state))}})
        .set(count);
  }
}

}  // namespace

void scrapeState(Metrics& metrics, Shell& shell, History& history) {
  metrics.onScrape([&] {
    scrapeGroups(metrics, shell);
    scrapeNodes(metrics, shell);
    metrics.gauge("timeslice_jobs", "Jobs that the master knows.")
        .set(double(shell.directory().jobs().size()));
    metrics.gauge("timeslice_open_orders", "Orders to nodes without an end yet.")
        .set(double(shell.orders().open()));
    metrics.gauge("timeslice_generation", "This life of the master.")
        .set(double(shell.generation().number));
    metrics.gauge("timeslice_history_lost_lines", "Event lines that never reached the disk.")
        .set(double(history.lost()));
  });
}

}  // namespace ts
