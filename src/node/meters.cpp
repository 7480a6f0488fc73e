#include "node/meters.h"

#include "node/causes.h"

namespace ts::node {
namespace {

constexpr double kMicro = 1e-6;

const char* nameOf(Residency r) {
  switch (r) {
    case Residency::Absent:
      return "absent";
    case Residency::Resident:
      return "resident";
    case Residency::Quiescing:
      return "quiescing";
    case Residency::Quiet:
      return "quiet";
    case Residency::Saving:
      return "saving";
    case Residency::Saved:
      return "saved";
    case Residency::Restoring:
      return "restoring";
    case Residency::Faulted:
      return "faulted";
  }
  return "faulted";
}

}  // namespace

Meters::Meters(Metrics& metrics)
    : metrics_(metrics),
      waits_(metrics.histogram("timeslice_node_wait_seconds", "From an acquire to its grant.",
                               secondsBounds())),
      yields_(
          metrics.counter("timeslice_node_yields_total", "Slices that participants gave back.")) {}

Meters::Verb& Meters::verb(const std::string& name) {
  auto it = verbs_.find(name);
  if (it != verbs_.end()) return it->second;
  Labels labels{{"order", name}};
  Verb verb{metrics_.histogram("timeslice_node_order_seconds", "From an order to its outcome.",
                               secondsBounds(), labels),
            metrics_.counter("timeslice_node_order_failures_total",
                             "Orders that were refused or failed.", labels),
            metrics_.counter("timeslice_node_moved_bytes_total", "Device state moved by orders.",
                             labels)};
  return verbs_.emplace(name, verb).first->second;
}

void Meters::ended(const std::string& name, const Outcome& outcome, std::uint64_t tookUs) {
  auto& v = verb(name);
  v.seconds.observe(double(tookUs) * kMicro);
  if (!outcome.ok()) v.failed.add();
  v.bytes.add(outcome.bytes);
}

void Meters::overdue(const std::string& name) {
  metrics_
      .counter("timeslice_node_overdue_total", "Orders that ran past their deadline.",
               {{"order", name}})
      .add();
}

void Meters::granted(std::uint64_t waitedUs) {
  waits_.observe(double(waitedUs) * kMicro);
}

void Meters::refused(const char* why) {
  metrics_
      .counter("timeslice_node_refusals_total", "Acquires and joins that were refused.",
               {{"cause", why}})
      .add();
}

void Meters::setResidencies(const Registry& registry) {
  const std::string name = "timeslice_node_members";
  metrics_.clear(name);
  for (const auto& [id, m] : registry.members()) {
    metrics_.gauge(name, "Processes with device state.", {{"residency", nameOf(m.residency)}})
        .add(1);
  }
}

void Meters::scrape(const Registry& registry, std::function<Now()> now) {
  metrics_.onScrape([this, &registry, now = std::move(now)] {
    auto set = [&](const char* name, const char* help, double value) {
      metrics_.gauge(name, help).set(value);
    };
    auto n = now();
    set("timeslice_node_jobs", "Jobs with a process here.", double(registry.jobs().size()));
    set("timeslice_node_participants", "Processes that joined.",
        double(registry.participants().size()));
    set("timeslice_node_connections", "Local connections.", double(n.connections));
    set("timeslice_node_saved_bytes", "Host memory that snapshots hold.",
        double(registry.savedBytes()));
    set("timeslice_node_booked_bytes", "Host memory promised to switches on their way.",
        double(n.booked));
    set("timeslice_node_overdue", "Orders past their deadline now.", double(n.overdue));
    set("timeslice_node_master_up", "1: the line to the master is up.", n.masterUp ? 1 : 0);
    setResidencies(registry);
  });
}

}  // namespace ts::node
