#include "master/timeline.h"

#include <algorithm>

namespace ts {

void Timeline::ordered(const Action& action, Instant now) {
  std::visit([&](const auto& a) { on(a, now); }, action);
}

std::optional<Spans> Timeline::ended(const NodeOrder& order, Instant now) {
  if (const auto* save = std::get_if<Save>(&order)) {
    if (Switch* s = ofOutgoing(save->member)) s->saved = now;
  }
  const auto* grant = std::get_if<Grant>(&order);
  if (grant == nullptr) return std::nullopt;
  auto found = switches_.find(grant->job);
  if (found == switches_.end() || found->second.epoch != grant->epoch) return std::nullopt;
  if (--found->second.open > 0) return std::nullopt;
  Spans done = spans(grant->job, found->second, now);
  switches_.erase(found);
  return done;
}

void Timeline::on(const Prepare& order, Instant now) {
  auto [found, isNew] = switches_.try_emplace(order.job);
  Switch& s = found->second;
  if (isNew) s.prepares = s.started = s.saves = s.saved = now;
  s.outgoing.insert(order.outgoing.begin(), order.outgoing.end());
}

void Timeline::on(const Save& order, Instant now) {
  Switch* s = ofOutgoing(order.member);
  if (s != nullptr && s->saves == s->started) s->saves = s->saved = now;
}

void Timeline::on(const Grant& order, Instant now) {
  auto found = switches_.find(order.job);
  if (found == switches_.end()) return;
  Switch& s = found->second;
  if (!s.epoch) {
    s.epoch = order.epoch;
    s.grants = now;
    s.waited = order.waited;
  }
  if (s.epoch == order.epoch) ++s.open;
}

void Timeline::on(const Notice& notice, Instant now) {
  auto found = switches_.find(notice.job);
  if (found == switches_.end()) return;
  Switch& s = found->second;
  bool over = notice.kind == Notice::Kind::SwitchRolledBack ||
              (notice.kind == Notice::Kind::SwitchFinished && !s.epoch);
  if (over) {
    switches_.erase(found);
  } else if (notice.kind == Notice::Kind::SwitchStarted) {
    s.started = s.saves = s.saved = now;
  }
}

Timeline::Switch* Timeline::ofOutgoing(MemberId member) {
  auto found = std::ranges::find_if(
      switches_, [&](const auto& s) { return s.second.outgoing.contains(member); });
  return found == switches_.end() ? nullptr : &found->second;
}

// Each span begins where the one before it ends, so that nothing is counted twice or left out.
Spans Timeline::spans(JobId job, const Switch& done, Instant now) {
  Instant asked = std::min(done.grants - done.waited, done.prepares);
  return {.job = job,
          .queue = done.prepares - asked,
          .prepare = done.started - done.prepares,
          .lock = done.saves - done.started,
          .save = done.saved - done.saves,
          .restore = done.grants - done.saved,
          .unlock = now - done.grants};
}

}  // namespace ts
