#include "simgpu/gate.h"

namespace simgpu {
namespace {

thread_local int depth = 0;

}  // namespace

void Gate::enter() {
  if (depth++ > 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !closed_; });
  ++inside_;
}

void Gate::leave() {
  if (--depth > 0) return;
  std::lock_guard lock(mutex_);
  if (--inside_ == 0 && closed_) changed_.notify_all();
}

void Gate::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

void Gate::open() {
  std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

bool Gate::drained(Until until) {
  std::unique_lock lock(mutex_);
  auto empty = [this] { return inside_ == 0; };
  if (until) return changed_.wait_until(lock, *until, empty);
  changed_.wait(lock, empty);
  return true;
}

}  // namespace simgpu
