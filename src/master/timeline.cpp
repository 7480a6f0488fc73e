#include "master/timeline.h"

#include <algorithm>

namespace ts {

void Timeline::happened(const Event& event) {
  std::visit([&](const auto& e) { on(e); }, event);
}

void Timeline::ordered(const Action& action, Instant now) {
  std::visit([&](const auto& a) { on(a, now); }, action);
}

std::optional<Spans> Timeline::ended(const NodeOrder& order, const Outcome& outcome, Instant now) {
  return std::visit([&](const auto& o) { return after(o, outcome, now); }, order);
}

// A dead node has no booking and answers no grant.
void Timeline::on(const NodeDied& event) {
  for (auto& [job, s] : switches_) s.booked.erase(event.node);
  std::erase_if(switches_, [&](const auto& entry) {
    const Switch& s = entry.second;
    auto grant = s.letGo.find(event.node);
    bool unanswered = grant != s.letGo.end() && !grant->second;
    return unanswered || !s.isUnderWay();
  });
}

void Timeline::on(const Prepare& order, Instant now) {
  auto [found, isNew] = switches_.try_emplace(order.job);
  Switch& s = found->second;
  if (isNew || s.epoch) s = {.prepares = now};
  s.booked[order.node] = order.operation;
  s.outgoing.insert(order.outgoing.begin(), order.outgoing.end());
}

void Timeline::on(const DropBooking& order, Instant) {
  unbook(switches_.find(order.job), order.node);
}

void Timeline::on(const Save& order, Instant now) {
  for (auto& [job, s] : switches_)
    if (s.movesOut(order.member) && !s.saves) s.saves = now;
}

// What found nothing to move any more when all had booked was no switch. The same epoch again lets
// somebody in later, or tries once more what failed.
void Timeline::on(const Grant& order, Instant now) {
  auto found = switches_.find(order.job);
  if (found == switches_.end()) return;
  Switch& s = found->second;
  if (!s.started) return void(switches_.erase(found));
  if (!s.epoch) {
    s.epoch = order.epoch;
    s.grants = now;
    s.waited = order.waited;
  }
  if (s.epoch == order.epoch) s.letGo.try_emplace(order.node, false);
}

void Timeline::on(const Notice& notice, Instant now) {
  auto found = switches_.find(notice.job);
  if (found == switches_.end()) return;
  Switch& s = found->second;
  bool over = notice.kind == Notice::Kind::SwitchRolledBack ||
              notice.kind == Notice::Kind::JobFaulted ||
              (notice.kind == Notice::Kind::SwitchFinished && !s.epoch);
  if (over) {
    switches_.erase(found);
  } else if (notice.kind == Notice::Kind::SwitchStarted) {
    s.started = now;
  }
}

std::optional<Spans> Timeline::after(const Prepare& order, const Outcome& outcome, Instant) {
  auto found = switches_.find(order.job);
  if (outcome.ok() || found == switches_.end()) return std::nullopt;
  auto booked = found->second.booked.find(order.node);
  bool last = booked != found->second.booked.end() && booked->second == order.operation;
  if (last) unbook(found, order.node);
  return std::nullopt;
}

std::optional<Spans> Timeline::after(const Save& order, const Outcome&, Instant now) {
  for (auto& [job, s] : switches_)
    if (s.movesOut(order.member)) s.saved = now;
  return std::nullopt;
}

// One that failed is tried again, until the job is at fault or its slice is over.
std::optional<Spans> Timeline::after(const Grant& order, const Outcome& outcome, Instant now) {
  auto found = granted(order.job, order.epoch);
  if (found == switches_.end() || !outcome.ok()) return std::nullopt;
  auto& letGo = found->second.letGo;
  letGo[order.node] = true;
  if (!std::ranges::all_of(letGo, [](const auto& node) { return node.second; }))
    return std::nullopt;
  Spans done = spans(order.job, found->second, now);
  switches_.erase(found);
  return done;
}

// Over on a node that never let it go.
std::optional<Spans> Timeline::after(const EndSlice& order, const Outcome&, Instant) {
  auto found = granted(order.job, order.epoch);
  if (found != switches_.end() && !found->second.letGo[order.node]) switches_.erase(found);
  return std::nullopt;
}

bool Timeline::Switch::movesOut(MemberId member) const {
  return started && !epoch && outgoing.contains(member);
}

Timeline::Switches::iterator Timeline::granted(JobId job, const Epoch& epoch) {
  auto found = switches_.find(job);
  bool other = found != switches_.end() && found->second.epoch != epoch;
  return other ? switches_.end() : found;
}

// A waiter that is held back, or gives up, before its switch has begun waits as if it had never
// been looked at.
void Timeline::unbook(Switches::iterator found, NodeId node) {
  if (found == switches_.end()) return;
  found->second.booked.erase(node);
  if (!found->second.isUnderWay()) switches_.erase(found);
}

// Each span begins where the one before it ends, so that nothing is counted twice or left out. What
// another switch was saving already when this one began had no lock.
Spans Timeline::spans(JobId job, const Switch& done, Instant now) {
  Instant asked = std::min(done.grants - done.waited, done.prepares);
  Instant started = done.started.value_or(done.prepares);
  Instant saves = done.saves.value_or(started);
  Instant saved = done.saved.value_or(saves);
  return {.job = job,
          .queue = done.prepares - asked,
          .prepare = started - done.prepares,
          .lock = saves - started,
          .save = saved - saves,
          .restore = done.grants - saved,
          .unlock = now - done.grants};
}

}  // namespace ts
