#include "backend/none_backend.h"

#include "backend/process.h"

namespace ts {

Probe NoneBackend::probe() {
  return {.usable = true, .detail = "moves nothing"};
}

TargetState NoneBackend::state(const Target& target) {
  if (lookAt(target).kind == ProcessKind::Gone) return TargetState::Gone;
  std::lock_guard lock(mutex_);
  auto it = states_.find(target.pid);
  return it == states_.end() ? TargetState::Running : it->second;
}

BackendOutcome NoneBackend::quiesce(const Target& target, Deadline) {
  return move(target, TargetState::Running, TargetState::Locked);
}
BackendOutcome NoneBackend::save(const Target& target, const DeviceSet&) {
  return move(target, TargetState::Locked, TargetState::Saved);
}
BackendOutcome NoneBackend::restore(const Target& target, const DeviceSet&) {
  return move(target, TargetState::Saved, TargetState::Locked);
}
BackendOutcome NoneBackend::release(const Target& target) {
  return move(target, TargetState::Locked, TargetState::Running);
}

BackendOutcome NoneBackend::discard(const Target& target) {
  std::lock_guard lock(mutex_);
  states_.erase(target.pid);
  return {.after = TargetState::Gone};
}

BackendOutcome NoneBackend::move(const Target& target, TargetState from, TargetState to) {
  using enum BackendOutcome::Code;
  ProcessLook look = lookAt(target);
  if (look.kind != ProcessKind::Leader) return refuse(look, target.pid);
  std::lock_guard lock(mutex_);
  TargetState& now = states_.try_emplace(target.pid, TargetState::Running).first->second;
  if (now != from && now != to) {
    return {.code = WrongState,
            .detail = "process " + std::to_string(target.pid) + " is " + toText(now) + ", not " +
                      toText(from),
            .after = now};
  }
  now = to;
  if (to == TargetState::Running) states_.erase(target.pid);
  return {.after = to};
}

}  // namespace ts
