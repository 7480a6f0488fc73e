#include "master/meters.h"

#include "core/describe.h"
#include "master/alarm.h"

namespace ts {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Meters::Meters(Metrics& metrics, Directory& directory) : metrics_(metrics), directory_(directory) {}

void Meters::ordered(const Action& action) {
  std::visit([this](const auto& a) { count(a); }, action);
}

void Meters::ended(std::string_view name, const Outcome& outcome, Duration took) {
  Verb& v = verb(name);
  v.seconds.observe(seconds(took));
  if (!outcome.ok()) v.failed.add();
}

void Meters::timed(const Spans& spans) {
  auto* job = directory_.find(spans.job);
  if (job == nullptr) return;
  const Duration all[] = {spans.queue, spans.prepare, spans.lock,
                          spans.save,  spans.restore, spans.unlock};
  auto& phases = group(job->group).phases;
  for (std::size_t i = 0; i < phases.size(); ++i) phases[i]->observe(seconds(all[i]));
}

void Meters::count(const Grant& grant) {
  auto* job = directory_.find(grant.job);
  if (job == nullptr || job->epoch == grant.epoch) return;  // another node of the same slice
  job->epoch = grant.epoch;
  job->grantedAt = monotonicNow();
  Group& g = group(job->group);
  g.grants.add();
  g.waits.observe(seconds(grant.waited));
  g.moved.add(grant.bytes);
}

void Meters::count(const Refuse& refusal) {
  metrics_
      .counter("timeslice_refusals_total", "Acquires that were refused.",
               {{"cause", text(refusal.cause)}})
      .add();
}

void Meters::count(const Notice& notice) {
  auto* job = directory_.find(notice.job);
  metrics_
      .counter("timeslice_notices_total", "What a person may want to know, by kind.",
               {{"kind", text(notice.kind)}})
      .add();
  if (job == nullptr) return;
  Instant now = monotonicNow();
  switch (notice.kind) {
    case Notice::Kind::SliceEnded:
      // Of a slice that an earlier master has granted only the node knows since when.
      if (job->grantedAt == Instant{}) break;
      group(job->group).holds.observe(seconds(now - job->grantedAt));
      break;
    case Notice::Kind::SwitchStarted:
      job->switchSince = now;
      break;
    case Notice::Kind::SwitchFinished:
      group(job->group).switches.observe(seconds(now - job->switchSince));
      break;
    case Notice::Kind::JobFaulted:
      metrics_
          .counter("timeslice_faults_total", "Jobs that could not be moved.",
                   {{"fault", text(notice.fault)}})
          .add();
      break;
    default:
      break;
  }
}

std::optional<Duration> Meters::meanHold(GroupId id) const {
  if (groups_.size() <= std::size_t(id)) return std::nullopt;
  const Histogram& holds = groups_[std::size_t(id)].holds;
  if (holds.count() == 0) return std::nullopt;
  double mean = holds.sum() / double(holds.count());
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(mean));
}

Meters::Group& Meters::group(GroupId id) {
  while (groups_.size() <= std::size_t(id)) {
    std::string name = directory_.name(GroupId(groups_.size()));
    Labels labels{{"group", name}};
    groups_.push_back(
        {metrics_.counter("timeslice_grants_total", "Slices granted.", labels),
         metrics_.histogram("timeslice_wait_seconds", "From an acquire to its grant.",
                            secondsBounds(), labels),
         metrics_.histogram("timeslice_hold_seconds", "From a grant to the end of the slice.",
                            secondsBounds(), labels),
         metrics_.histogram("timeslice_switch_seconds", "Moving one job out and another in.",
                            secondsBounds(), labels),
         metrics_.counter("timeslice_moved_bytes_total", "Device state moved, out and in.", labels),
         phasesOf(name)});
  }
  return groups_[std::size_t(id)];
}

std::vector<Histogram*> Meters::phasesOf(const std::string& group) {
  std::vector<Histogram*> out;
  for (const char* phase : {"queue", "prepare", "lock", "save", "restore", "unlock"}) {
    out.push_back(&metrics_.histogram(
        "timeslice_phase_seconds",
        "From an acquire that needed a switch to its end, in spans that sum to it.",
        secondsBounds(), {{"group", group}, {"phase", phase}}));
  }
  return out;
}

Meters::Verb& Meters::verb(std::string_view name) {
  for (Verb& v : verbs_)
    if (v.name == name) return v;
  Labels labels{{"order", std::string(name)}};
  verbs_.push_back(
      {name,
       metrics_.histogram("timeslice_order_seconds",
                          "From an order to a node to its end: the phases of switches.",
                          secondsBounds(), labels),
       metrics_.counter("timeslice_orders_failed_total", "Orders that were refused or failed.",
                        labels)});
  return verbs_.back();
}

}  // namespace ts
