#include "cli/machine.h"

#include <fstream>

#include "backend/cuda_driver.h"
#include "device/inventory.h"

namespace ts::cli {
namespace {

constexpr int kCapSysPtrace = 19;

Finding driver() {
  auto driver = cuda::openDriver();
  if (driver->usable())
    return {Verdict::Ok, driver->versionText() + ", checkpoint API present", ""};
  return {Verdict::Fail, "CUDA driver: " + driver->error,
          "backend cuda needs an NVIDIA driver of at least 570; backend none needs nothing"};
}

void devices(Findings& out) {
  auto inventory = openNvml();
  auto gpus = inventory->gpus();
  if (gpus.empty()) {
    out.push_back(
        {Verdict::Fail, "NVML: " + inventory->detail(),
         "without NVML tsnoded finds no device; for backend none set `devices` in node.toml"});
    return;
  }
  out.push_back({Verdict::Ok, "NVML: " + inventory->detail(), ""});
  for (const GpuInfo& gpu : gpus) {
    std::string name = "device " + std::to_string(gpu.index) + " " + gpu.name + " " + gpu.uuid;
    if (gpu.migMode.value_or(false)) {
      out.push_back({Verdict::Fail, name + ", MIG is on", "turn it off: nvidia-smi -mig 0"});
    } else if (!gpu.persistenceMode.value_or(true)) {
      out.push_back({Verdict::Warn, name + ", persistence mode is off",
                     "turn it on, restores are faster then: nvidia-smi -pm 1"});
    } else {
      out.push_back({Verdict::Ok, name, ""});
    }
  }
}

Finding ptraceScope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (!(file >> scope)) return {Verdict::Ok, "ptrace is not restricted by yama", ""};
  std::string what = "ptrace_scope is " + std::to_string(scope);
  if (scope < 3) return {Verdict::Ok, what, ""};
  return {Verdict::Fail, what,
          "3 forbids saving other processes: set kernel.yama.ptrace_scope=1 and reboot"};
}

Finding capability() {
  std::ifstream file("/proc/self/status");
  unsigned long long effective = 0;
  for (std::string word; file >> word;) {
    if (word == "CapEff:" && file >> std::hex >> effective) break;
  }
  if ((effective >> kCapSysPtrace) & 1) return {Verdict::Ok, "CAP_SYS_PTRACE is there", ""};
  return {Verdict::Warn, "tsctl runs without CAP_SYS_PTRACE",
          "tsnoded needs it: its unit grants it, a container needs --cap-add SYS_PTRACE"};
}

}  // namespace

Findings examineMachine() {
  Findings findings{driver()};
  devices(findings);
  findings.push_back(ptraceScope());
  findings.push_back(capability());
  return findings;
}

}  // namespace ts::cli
