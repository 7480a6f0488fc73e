// What GPUs are here and how full they are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ts {

struct GpuInfo {
  std::uint32_t index = 0;  // in NVML order
  std::string uuid;         // "GPU-…"
  std::string name;
  std::string busId;
  std::uint64_t totalBytes = 0;
  std::optional<bool> persistenceMode;  // nothing: the driver does not say
  std::optional<bool> migMode;
};

struct GpuMemory {
  std::uint64_t totalBytes = 0;
  std::uint64_t freeBytes = 0;
  std::uint64_t usedBytes = 0;
};

struct GpuProcess {
  pid_t pid = 0;
  std::optional<std::uint64_t> bytes;  // nothing: the driver does not say
  bool mps = false;                    // it shares the GPU through MPS, as far as the driver says
};

// Blocking calls of a few hundred microseconds; safe from any thread.
class Inventory {
public:
  virtual ~Inventory() = default;
  virtual std::vector<GpuInfo> gpus() = 0;
  // Nothing: it cannot be measured. That is not the same as empty, and never means free.
  virtual std::optional<GpuMemory> memory(std::uint32_t gpu) = 0;
  virtual std::optional<std::vector<GpuProcess>> processes(std::uint32_t gpu) = 0;
  virtual std::string detail() const = 0;  // driver version, or why there is nothing
};

// NVML by dlopen("libnvidia-ml.so.1"). Without it: an inventory without GPUs whose detail says why.
std::unique_ptr<Inventory> openNvml(const std::string& library = "libnvidia-ml.so.1");
// Devices that exist by configuration only, for nodes that use the backend `none`.
std::unique_ptr<Inventory> declaredInventory(std::uint32_t count, const std::string& nodeName);

}  // namespace ts
