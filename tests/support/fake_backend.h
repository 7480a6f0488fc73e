// A backend for tests: can be held, fails on request, and remembers who called what.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "backend/snapshot_backend.h"

namespace ts::test {

// Any number of threads may call it. States are set with `place`; an unknown pid runs.
class FakeBackend final : public SnapshotBackend {
public:
  // Every later call of `verb` ("save", "restore"…; "" for all) waits inside until letGo().
  void hold(const std::string& verb) {
    change([&] { held_ = verb, holding_ = true; });
  }
  // What state() says was read before it waited.
  void readEarly() {
    change([&] { readsEarly_ = true; });
  }
  void letGo() {
    change([&] { holding_ = false; });
  }
  // The n-th call of `verb` from now on (0: the next one) fails with `outcome`.
  void failIn(int n, const std::string& verb, BackendOutcome outcome) {
    change([&] { failures_.push_back({n, verb, std::move(outcome)}); });
  }
  void place(pid_t pid, TargetState state) {
    change([&] { states_[pid] = state; });
  }
  void setBytes(std::uint64_t bytes) {
    change([&] { bytes_ = bytes; });
  }
  void setResidueLimit(std::uint64_t bytes) {
    change([&] { residue_ = bytes; });
  }

  // "save 17", "restore 17"… in the order in which they began.
  std::vector<std::string> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  bool holds(const std::string& verb) const {
    std::lock_guard lock(mutex_);
    return holding_ && held_ == verb;
  }
  bool isHeld() const { return held() > 0; }
  int held() const {  // calls that wait inside
    std::lock_guard lock(mutex_);
    return waiting_;
  }

  std::string name() const override { return "fake"; }
  Probe probe() override {
    std::unique_lock lock(mutex_);
    waitWhileHeld(lock, "probe");
    return {.usable = true, .detail = "fake"};
  }
  TargetState state(const Target& target) override {
    std::unique_lock lock(mutex_);
    auto before = stateOf(target.pid);
    waitWhileHeld(lock, "state");
    return readsEarly_ ? before : stateOf(target.pid);
  }
  BackendOutcome quiesce(const Target& target, Deadline) override {
    return call("quiesce", target, TargetState::Running, TargetState::Locked);
  }
  BackendOutcome save(const Target& target, const DeviceSet&) override {
    return call("save", target, TargetState::Locked, TargetState::Saved);
  }
  BackendOutcome restore(const Target& target, const DeviceSet&) override {
    return call("restore", target, TargetState::Saved, TargetState::Locked);
  }
  BackendOutcome release(const Target& target) override {
    return call("release", target, TargetState::Locked, TargetState::Running);
  }
  BackendOutcome discard(const Target& target) override {
    return call("discard", target, stateOfLocked(target.pid), TargetState::Gone);
  }
  std::uint64_t residueLimit() const override {
    std::lock_guard lock(mutex_);
    return residue_;
  }

private:
  struct Failure {
    int in;
    std::string verb;
    BackendOutcome outcome;
  };

  template <class F>
  void change(F f) {
    {
      std::lock_guard lock(mutex_);
      f();
    }
    changed_.notify_all();
  }

  TargetState stateOf(pid_t pid) const {
    auto it = states_.find(pid);
    return it == states_.end() ? TargetState::Running : it->second;
  }
  TargetState stateOfLocked(pid_t pid) const {
    std::lock_guard lock(mutex_);
    return stateOf(pid);
  }

  void waitWhileHeld(std::unique_lock<std::mutex>& lock, const std::string& verb) {
    ++waiting_;
    changed_.wait(lock, [&] { return !holding_ || (!held_.empty() && held_ != verb); });
    --waiting_;
  }

  // The failure that is due for this call; the others for this verb come one call nearer.
  bool takeFailure(const std::string& verb, BackendOutcome& out) {
    auto due = failures_.end();
    for (auto it = failures_.begin(); it != failures_.end(); ++it) {
      if (it->verb != verb) continue;
      if (it->in-- == 0) due = it;
    }
    if (due == failures_.end()) return false;
    out = due->outcome;
    failures_.erase(due);
    return true;
  }

  BackendOutcome call(const std::string& verb, const Target& target, TargetState from,
                      TargetState to) {
    std::unique_lock lock(mutex_);
    calls_.push_back(verb + " " + std::to_string(target.pid));
    waitWhileHeld(lock, verb);
    BackendOutcome out;
    TargetState now = stateOf(target.pid);
    if (takeFailure(verb, out)) {
      out.after = now;
      return out;
    }
    if (now != from && now != to) {
      return {.code = BackendOutcome::Code::WrongState,
              .detail = std::string("it is ") + toText(now),
              .after = now};
    }
    states_[target.pid] = to;
    return {.after = to, .bytes = verb == "save" || verb == "restore" ? bytes_ : 0};
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::vector<Failure> failures_;
  std::map<pid_t, TargetState> states_;
  std::string held_;
  bool holding_ = false;
  bool readsEarly_ = false;
  int waiting_ = 0;
  std::uint64_t bytes_ = 1 << 20;
  std::uint64_t residue_ = 0;
};

}  // namespace ts::test
