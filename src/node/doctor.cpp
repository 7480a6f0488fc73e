#include "node/doctor.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "node/capabilities.h"
#include "node/host_memory.h"

namespace ts::node {
namespace {

class Findings {
public:
  void add(const char* verdict, const std::string& what, const std::string& cure = "") {
    text_ += std::string(verdict) + "\t" + what + (cure.empty() ? "" : "; " + cure) + "\n";
  }
  void check(bool good, const std::string& what, const std::string& cure) {
    if (good)
      add("ok", what);
    else
      add("warn", what, cure);
  }
  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

std::string gib(std::uint64_t bytes) {
  auto tenths = bytes / ((1ull << 30) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

void examineBackends(const NodeConfig& config, const Backends& backends, Findings& out) {
  for (const auto& [name, backend] : backends) {
    auto probe = backend->probe();
    auto what = "backend " + name + ": " + (probe.detail.empty() ? "usable" : probe.detail);
    for (const auto& f : probe.features) what += ", " + f;
    if (probe.usable)
      out.add("ok", what);
    else if (name == config.backend)
      out.add("fail", what, "jobs that name no backend get this one");
    else
      out.add("warn", what);
  }
}

void examineDevices(Inventory& inventory, Findings& out) {
  auto gpus = inventory.gpus();
  out.check(!gpus.empty(),
            std::to_string(gpus.size()) + (gpus.size() == 1 ? " device: " : " devices: ") +
                inventory.detail(),
            "without devices nobody can join; with backend none set `devices`");
  for (const auto& gpu : gpus) {
    auto what = "device " + std::to_string(gpu.index) + " " + gpu.name + " " + gpu.uuid;
    auto memory = inventory.memory(gpu.index);
    if (memory) what += ", " + gib(memory->freeBytes) + " of " + gib(memory->totalBytes) + " free";
    if (gpu.migMode.value_or(false)) {
      out.add("fail", what + ", MIG is on", "its jobs cannot be saved: turn MIG off");
    } else if (gpu.persistenceMode.has_value() && !*gpu.persistenceMode) {
      out.add("warn", what + ", persistence mode is off", "nvidia-smi -pm 1");
    } else {
      out.add("ok", what);
    }
  }
}

// What the driver can bring back. It lets programs use more than that, and says so too late: at the
// restore.
void examineFeatures(Inventory& inventory, Findings& out) {
  constexpr int kIpcDriver = 610;
  auto detail = inventory.detail();
  auto at = detail.find_first_of("0123456789");
  if (!detail.starts_with("driver ") || at == std::string::npos) return;
  bool ipc = std::atoi(detail.c_str() + at) >= kIpcDriver;
  out.add("ok", "restores one process's memory: yes; memory shared by CUDA IPC: " +
                    std::string(ipc ? "yes" : "no, needs driver 610; such jobs must not be saved") +
                    "; MIG: no; MPS clients: no");
}

void examineRights(Findings& out) {
  out.check(::geteuid() == 0, "runs as uid " + std::to_string(::geteuid()),
            "the driver lets only root move other users' processes");
  for (const auto& c : kCapabilities) {
    bool has = (capabilitySet("CapEff") >> c.number) & 1;
    out.check(has, std::string(c.name) + ": " + c.purpose,
              "missing: start tsnoded as root, with it in CapabilityBoundingSet of its unit");
  }
  std::ifstream in("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (in >> scope) {
    out.check(scope < 3, "ptrace_scope is " + std::to_string(scope),
              "3 forbids what saving needs: sysctl kernel.yama.ptrace_scope=1 (after a reboot)");
  }
}

}  // namespace

std::string examine(const NodeConfig& config, const Health& health, Inventory& inventory,
                    const Backends& backends) {
  Findings out;
  out.add("ok",
          "node " + health.name + ", tsnoded " + health.version + ", socket " + config.socket);
  bool alone = config.master.empty();
  out.check(alone || health.master == "up",
            "master " + (alone ? std::string("none: alone") : config.master), health.master);
  examineRights(out);
  examineDevices(inventory, out);
  examineFeatures(inventory, out);
  examineBackends(config, backends, out);
  out.add("ok", "host memory: " + gib(memAvailable()) + " available, snapshots hold " +
                    gib(health.savedBytes) +
                    (config.hostBudget ? " of " + gib(config.hostBudget) : ""));
  for (const auto& late : health.overdue) {
    auto cure = late.find("; ");
    out.add("fail", late.substr(0, cure), late.substr(cure + 2));
  }
  return out.take();
}

kj::AutoCloseFd textAsFile(const std::string& text) {
  int fd;
  KJ_SYSCALL(fd = ::memfd_create("timeslice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  kj::AutoCloseFd file(fd);
  for (std::size_t at = 0; at < text.size();) {
    ssize_t n;
    KJ_SYSCALL(n = ::pwrite(file, text.data() + at, text.size() - at, off_t(at)));
    at += std::size_t(n);
  }
  KJ_SYSCALL(::fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
  return file;
}

}  // namespace ts::node
