// One look at the devices and at the processes that use them. Blocking; runs on a worker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "node/process.h"
#include "node/room.h"

namespace ts::node {

struct Seen {
  Process process;    // no start time: it had ended when we looked, and its memory is still held
  DeviceBytes bytes;  // on each device where it has some
  std::set<std::uint32_t> unmeasured;  // that it uses, and the driver does not say how much
  bool mps = false;                    // the driver lists it as a client of MPS
};

// What was not measured is not free: each question has the answer "nobody knows".
struct Scan {
  std::vector<Seen> users;                    // processes that the driver names; others are skipped
  std::map<pid_t, Process> ancestors;         // and they themselves
  std::map<std::uint32_t, GpuMemory> memory;  // of devices whose memory could be read
  std::vector<std::uint32_t> measured;        // whose process lists could be read
  std::string detail;                         // the inventory's: why something could not be read

  bool isMeasured(std::uint32_t device) const;
  const Seen* find(const Identity& who) const;
  // What it has on all devices. Nothing when one of `devices` could not be measured, or one where
  // it is.
  std::optional<DeviceBytes> bytesOf(const Identity& who,
                                     const std::vector<std::uint32_t>& devices) const;
  // "device 3 cannot be measured: …"
  std::string whyUnmeasured(std::uint32_t device) const;
};

Scan scan(Inventory& inventory, const std::vector<std::uint32_t>& devices);

std::vector<std::uint32_t> devicesOf(const DeviceBytes& bytes);
Bytes total(const DeviceBytes& bytes);

}  // namespace ts::node
