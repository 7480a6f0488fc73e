// The backend of jobs without device state: moves nothing and keeps the states, so that turns are
// taken.
#pragma once

#include <map>
#include <mutex>

#include "backend/snapshot_backend.h"

namespace ts {

// What it remembers is gone after a restart of the daemon; then everybody is running, which is
// true.
class NoneBackend final : public SnapshotBackend {
public:
  std::string name() const override { return "none"; }
  Probe probe() override;
  TargetState state(const Target& target) override;
  BackendOutcome quiesce(const Target& target, Deadline deadline) override;
  BackendOutcome save(const Target& target, const DeviceSet& devices) override;
  BackendOutcome restore(const Target& target, const DeviceSet& devices) override;
  BackendOutcome release(const Target& target) override;
  BackendOutcome discard(const Target& target) override;
  std::uint64_t residueLimit() const override { return 0; }
  bool isWeightless() const override { return true; }

private:
  BackendOutcome move(const Target& target, TargetState from, TargetState to);

  std::mutex mutex_;
  std::map<pid_t, TargetState> states_;  // who is not in it runs
};

}  // namespace ts
