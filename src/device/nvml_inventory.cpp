#include <algorithm>
#include <array>

#include "device/inventory.h"
#include "device/nvml_library.h"

namespace ts {
namespace {

using nvml::Device;
using nvml::Library;

std::string driverVersion(const Library& library) {
  std::array<char, 96> text{};
  bool known = library.systemGetDriverVersion != nullptr &&
               library.systemGetDriverVersion(text.data(), text.size()) == nvml::kSuccess;
  return known ? text.data() : "of unknown version";
}

std::optional<bool> persistence(const Library& library, Device device) {
  int on = 0;
  if (library.deviceGetPersistenceMode == nullptr) return std::nullopt;
  if (library.deviceGetPersistenceMode(device, &on) != nvml::kSuccess) return std::nullopt;
  return on != 0;
}

std::optional<bool> mig(const Library& library, Device device) {
  unsigned int now = 0;
  unsigned int afterReboot = 0;
  if (library.deviceGetMigMode == nullptr) return std::nullopt;
  if (library.deviceGetMigMode(device, &now, &afterReboot) != nvml::kSuccess) return std::nullopt;
  return now != 0;
}

GpuInfo describeGpu(const Library& library, Device device, std::uint32_t index) {
  GpuInfo out{.index = index};
  std::array<char, 96> text{};
  if (library.deviceGetUuid(device, text.data(), text.size()) == nvml::kSuccess)
    out.uuid = text.data();
  if (library.deviceGetName != nullptr &&
      library.deviceGetName(device, text.data(), text.size()) == nvml::kSuccess)
    out.name = text.data();
  nvml::PciInfo pci{};
  if (library.deviceGetPciInfo != nullptr &&
      library.deviceGetPciInfo(device, &pci) == nvml::kSuccess)
    out.busId = pci.busId;
  nvml::Memory memory{};
  if (library.deviceGetMemoryInfo(device, &memory) == nvml::kSuccess) out.totalBytes = memory.total;
  out.persistenceMode = persistence(library, device);
  out.migMode = mig(library, device);
  return out;
}

// The list grows while we ask, so the call is repeated with what it says it needs, plus some.
template <class Info>
std::optional<std::vector<Info>> listAll(nvml::Return (*call)(Device, unsigned int*, Info*),
                                         Device device) {
  constexpr unsigned int kSpare = 16;
  constexpr int kTries = 8;
  std::vector<Info> found(kSpare);
  for (int i = 0; i < kTries; ++i) {
    auto count = static_cast<unsigned int>(found.size());
    nvml::Return code = call(device, &count, found.data());
    if (code == nvml::kInsufficientSize) {
      found.resize(count + kSpare);
      continue;
    }
    if (code != nvml::kSuccess) return std::nullopt;
    found.resize(count);
    return found;
  }
  return std::nullopt;
}

template <class Info>
std::optional<std::vector<GpuProcess>> toProcesses(const std::optional<std::vector<Info>>& found) {
  if (!found) return std::nullopt;
  std::vector<GpuProcess> out;
  for (const Info& info : *found) {
    GpuProcess process{.pid = static_cast<pid_t>(info.pid)};
    if (info.usedGpuMemory != nvml::kNotAvailable) process.bytes = info.usedGpuMemory;
    out.push_back(process);
  }
  return out;
}

// A driver may list them among the others, too.
void addMpsClients(std::vector<GpuProcess>& all, const std::vector<GpuProcess>& clients) {
  for (const GpuProcess& client : clients) {
    auto known = std::ranges::find(all, client.pid, &GpuProcess::pid);
    if (known == all.end()) known = all.insert(all.end(), client);
    known->mps = true;
  }
}

class NvmlInventory final : public Inventory {
public:
  explicit NvmlInventory(const std::string& path) : library_(nvml::openLibrary(path)) { start(); }

  std::vector<GpuInfo> gpus() override { return gpus_; }
  std::string detail() const override { return detail_; }

  std::optional<GpuMemory> memory(std::uint32_t gpu) override {
    Device device = handle(gpu);
    nvml::Memory now{};
    if (device == nullptr) return std::nullopt;
    if (library_.deviceGetMemoryInfo(device, &now) != nvml::kSuccess) return std::nullopt;
    return GpuMemory{.totalBytes = now.total, .freeBytes = now.free, .usedBytes = now.used};
  }

  std::optional<std::vector<GpuProcess>> processes(std::uint32_t gpu) override {
    Device device = handle(gpu);
    if (device == nullptr) return std::nullopt;
    auto all = plainProcesses(device);
    if (!all || library_.mpsClients == nullptr) return all;
    // Without MPS a driver may say that it does not support the question.
    auto clients = toProcesses(listAll(library_.mpsClients, device));
    if (clients) addMpsClients(*all, *clients);
    return all;
  }

private:
  std::optional<std::vector<GpuProcess>> plainProcesses(Device device) {
    if (library_.processesV2 != nullptr) return toProcesses(listAll(library_.processesV2, device));
    if (library_.processesV1 != nullptr) return toProcesses(listAll(library_.processesV1, device));
    return std::nullopt;
  }

  void start() {
    detail_ = library_.error;
    if (!detail_.empty()) return;
    nvml::Return code = library_.init();
    unsigned int count = 0;
    if (code == nvml::kSuccess) code = library_.deviceGetCount(&count);
    if (code != nvml::kSuccess) {
      detail_ = "the NVIDIA driver does not answer: " + library_.nameOf(code);
      return;
    }
    detail_ = "driver " + driverVersion(library_);
    for (unsigned int i = 0; i < count; ++i) add(i);
    if (count == 0) detail_ += ", no GPU";
  }

  // A GPU that has fallen off the bus is not listed, and the others keep their indices.
  void add(unsigned int index) {
    Device device = nullptr;
    nvml::Return code = library_.deviceGetHandleByIndex(index, &device);
    bool there = code == nvml::kSuccess;
    handles_.push_back(there ? device : nullptr);
    if (there) gpus_.push_back(describeGpu(library_, device, index));
    if (!there) detail_ += ", GPU " + std::to_string(index) + ": " + library_.nameOf(code);
  }

  Device handle(std::uint32_t gpu) const { return gpu < handles_.size() ? handles_[gpu] : nullptr; }

  Library library_;
  std::string detail_;
  std::vector<Device> handles_;  // by index
  std::vector<GpuInfo> gpus_;
};

}  // namespace

std::unique_ptr<Inventory> openNvml(const std::string& library) {
  return std::make_unique<NvmlInventory>(library);
}

}  // namespace ts
