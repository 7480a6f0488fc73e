#include "device/inventory.h"

namespace ts {
namespace {

// Nothing can be measured on a device that exists by name only, so nothing is claimed about its
// memory.
class DeclaredInventory final : public Inventory {
public:
  DeclaredInventory(std::uint32_t count, const std::string& nodeName) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string number = std::to_string(i);
      gpus_.push_back(
          {.index = i, .uuid = "declared-" + nodeName + "-" + number, .name = "declared"});
    }
  }

  std::vector<GpuInfo> gpus() override { return gpus_; }
  std::optional<GpuMemory> memory(std::uint32_t) override { return std::nullopt; }
  std::optional<std::vector<GpuProcess>> processes(std::uint32_t) override { return std::nullopt; }
  std::string detail() const override {
    return std::to_string(gpus_.size()) + " declared in the configuration, none measured";
  }

private:
  std::vector<GpuInfo> gpus_;
};

}  // namespace

std::unique_ptr<Inventory> declaredInventory(std::uint32_t count, const std::string& nodeName) {
  return std::make_unique<DeclaredInventory>(count, nodeName);
}

}  // namespace ts
