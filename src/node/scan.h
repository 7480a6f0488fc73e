// One look at the devices and at the processes that use them. Blocking; runs on a worker.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "device/inventory.h"
#include "node/process.h"
#include "node/room.h"

namespace ts::node {

struct Seen {
  Process process;
  DeviceBytes bytes;  // on each measured device where it has some
};

struct Scan {
  std::vector<Seen> users;                // processes with device memory; others are skipped
  std::map<pid_t, Process> ancestors;     // and they themselves
  std::map<std::uint32_t, GpuMemory> memory;  // of measured devices
  std::vector<std::uint32_t> measured;    // whose process lists could be read
  bool isMeasured(std::uint32_t device) const;
  DeviceBytes bytesOf(pid_t pid) const;
};

Scan scan(Inventory& inventory, const std::vector<std::uint32_t>& devices);

}  // namespace ts::node
