// The backend over the driver's checkpoint API: all of a process's device state, on all its
// devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "backend/cuda_step.h"
#include "backend/snapshot_backend.h"

namespace ts {

// One instance serves a node for the daemon's whole life, from any number of threads.
class CudaBackend final : public SnapshotBackend {
public:
  // Bytes of device memory that a process has, as measured; nothing: not known.
  using Measure = std::function<std::optional<std::uint64_t>(pid_t)>;

  explicit CudaBackend(std::shared_ptr<const cuda::Driver> driver, Measure measure = {},
                       cuda::Patience patience = {});

  std::string name() const override { return "cuda"; }
  Probe probe() override;
  TargetState state(const Target& target) override;
  BackendOutcome quiesce(const Target& target, Deadline deadline) override;
  BackendOutcome save(const Target& target, const DeviceSet& devices) override;
  BackendOutcome restore(const Target& target, const DeviceSet& devices) override;
  BackendOutcome release(const Target& target) override;
  BackendOutcome discard(const Target& target) override;
  std::uint64_t residueLimit() const override { return 0; }

private:
  std::uint64_t measured(pid_t pid) const;

  std::shared_ptr<const cuda::Driver> driver_;
  Measure measure_;
  cuda::StepRunner steps_;
};

}  // namespace ts
