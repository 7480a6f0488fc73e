#include "node/scan.h"

#include <algorithm>

namespace ts::node {
namespace {

struct Use {
  DeviceBytes bytes;
  std::set<std::uint32_t> unmeasured;
  bool mps = false;
};
using Users = std::map<pid_t, Use>;

void readDevice(Inventory& inventory, std::uint32_t device, Scan& out, Users& users) {
  if (auto memory = inventory.memory(device)) out.memory[device] = *memory;
  auto processes = inventory.processes(device);
  if (!processes) return;
  out.measured.push_back(device);
  for (const auto& p : *processes) {
    if (p.mps) users[p.pid].mps = true;
    if (!p.bytes)
      users[p.pid].unmeasured.insert(device);
    else if (*p.bytes > 0)
      users[p.pid].bytes[device] += *p.bytes;
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

// One that had ended when we looked is whom we ask for: its number cannot have had a new owner
// then.
const Seen* Scan::find(const Identity& who) const {
  auto it = std::ranges::find_if(users, [&](const Seen& s) {
    const auto& seen = s.process.identity;
    return seen.pid == who.pid && (seen.startTime == who.startTime || seen.startTime == 0);
  });
  return it == users.end() ? nullptr : &*it;
}

std::optional<DeviceBytes> Scan::bytesOf(const Identity& who,
                                         const std::vector<std::uint32_t>& devices) const {
  if (!std::ranges::all_of(devices, [&](auto d) { return isMeasured(d); })) return {};
  const Seen* seen = find(who);
  if (!seen) return DeviceBytes{};
  if (!seen->unmeasured.empty()) return {};
  return seen->bytes;
}

std::string Scan::whyUnmeasured(std::uint32_t device) const {
  return "device " + std::to_string(device) + " cannot be measured: " + detail;
}

Scan scan(Inventory& inventory, const std::vector<std::uint32_t>& devices) {
  Scan out{.detail = inventory.detail()};
  Users users;
  for (auto device : devices) readDevice(inventory, device, out, users);
  for (const auto& [pid, use] : users) {
    readChain(pid, out.ancestors);
    auto it = out.ancestors.find(pid);
    Process process = it == out.ancestors.end() ? Process{.identity = {pid, 0}} : it->second;
    out.users.push_back({process, use.bytes, use.unmeasured, use.mps});
  }
  return out;
}

std::vector<std::uint32_t> devicesOf(const DeviceBytes& bytes) {
  std::vector<std::uint32_t> out;
  for (const auto& [device, n] : bytes) out.push_back(device);
  return out;
}

Bytes total(const DeviceBytes& bytes) {
  Bytes sum = 0;
  for (const auto& [device, n] : bytes) sum += n;
  return sum;
}

}  // namespace ts::node
