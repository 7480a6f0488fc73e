#include "node/scan.h"

#include <algorithm>

namespace ts::node {
namespace {

using Users = std::map<pid_t, DeviceBytes>;

void readDevice(Inventory& inventory, std::uint32_t device, Scan& out, Users& users) {
  if (auto memory = inventory.memory(device)) out.memory[device] = *memory;
  auto processes = inventory.processes(device);
  if (!processes) return;
  out.measured.push_back(device);
  for (const auto& p : *processes) {
    if (p.bytes.value_or(0) > 0) users[p.pid][device] += *p.bytes;
  }
}

// The process and those it comes from.
void readChain(pid_t pid, std::map<pid_t, Process>& out) {
  while (pid > 1 && !out.contains(pid)) {
    auto process = readProcess(pid);
    if (!process) return;
    out[pid] = *process;
    pid = process->parent;
  }
}

}  // namespace

bool Scan::isMeasured(std::uint32_t device) const {
  return std::ranges::find(measured, device) != measured.end();
}

DeviceBytes Scan::bytesOf(pid_t pid) const {
  auto it = std::ranges::find_if(
      users, [&](const Seen& s) { return s.process.identity.pid == pid; });
  return it == users.end() ? DeviceBytes{} : it->bytes;
}

Scan scan(Inventory& inventory, const std::vector<std::uint32_t>& devices) {
  Scan out;
  Users users;
  for (auto device : devices) readDevice(inventory, device, out, users);
  for (const auto& [pid, bytes] : users) {
    readChain(pid, out.ancestors);
    auto it = out.ancestors.find(pid);
    Process process = it == out.ancestors.end() ? Process{.identity = {pid, 0}} : it->second;
    out.users.push_back({process, bytes});
  }
  return out;
}

}  // namespace ts::node
