// The card of a test run: a simulated one, or the first GPU of this machine if TIMESLICE_REAL_GPU
// is set.
#pragma once

#include <catch2/catch.hpp>

#include "backend/cuda_backend.h"
#include "device/inventory.h"
#include "simgpu/stage.h"

namespace ts::test {

using simgpu_test::Actor;
using simgpu_test::kMiB;

class OneCard {
public:
  // One for the whole run: a driver does not change its cards while a program lives.
  static OneCard& get() {
    static OneCard it;
    return it;
  }
  bool simulated() const { return stage_ != nullptr; }
  simgpu_test::Stage& stage() { return *stage_; }

  // A program with a context on the card.
  std::unique_ptr<Actor> program() {
    auto made = std::make_unique<Actor>(cards(), std::vector<std::string>{});
    made->value("start 0");
    return made;
  }
  std::unique_ptr<Actor> programWithoutContext() {
    return std::make_unique<Actor>(cards(), std::vector<std::string>{});
  }
  std::uint64_t usedBytes() { return inventory->memory(0).value().usedBytes; }
  std::uint64_t freeBytes() { return inventory->memory(0).value().freeBytes; }

private:
  OneCard() {
    // The environment decides before any driver is loaded.
    if (std::getenv("TIMESLICE_REAL_GPU") == nullptr) {
      stage_ = std::make_unique<simgpu_test::Stage>();
      ::setenv("SIMGPU_CARDS", stage_->dir().c_str(), 1);
    }
    inventory = openNvml();
    backend = std::make_unique<CudaBackend>(cuda::openDriver(),
                                            [this](pid_t pid) { return bytesOf(pid); });
  }
  std::string cards() const {
    if (stage_) return stage_->dir();
    const char* given = std::getenv("SIMGPU_CARDS");  // simgpu in the place of the real driver
    return given != nullptr ? given : "";
  }
  std::optional<std::uint64_t> bytesOf(pid_t pid) {
    auto all = inventory->processes(0);
    if (!all) return std::nullopt;
    for (const GpuProcess& process : *all)
      if (process.pid == pid) return process.bytes;
    return std::nullopt;
  }

  std::unique_ptr<simgpu_test::Stage> stage_;

public:
  std::unique_ptr<Inventory> inventory;
  std::unique_ptr<CudaBackend> backend;
};

}  // namespace ts::test
