// Whether there is room for a switch: host memory for what is saved, device memory for what is
// restored. Pure, in whole bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wire/translate.h"

namespace ts::node {

using Bytes = std::uint64_t;
using DeviceBytes = std::map<std::uint32_t, Bytes>;  // by device

// A bound on host memory, as measured: what may still be taken.
struct HostLimit {
  std::string name;  // "MemAvailable", "cgroup /slurm/job_17"
  Bytes room = 0;
  std::vector<JobName> jobs;  // whose snapshots it bounds; empty: everybody's
};

// What one switch on this node needs.
struct Need {
  std::map<JobName, Bytes> host;  // by the outgoing job, which is charged for its snapshot
  DeviceBytes frees;              // by saving the outgoing, less what stays
  DeviceBytes takes;              // by restoring the incoming
};

// Room promised to switches that are on their way.
class Bookings {
public:
  // Bytes that all snapshots on this node may have together; 0: no such bound.
  explicit Bookings(Bytes budget) : budget_(budget) {}
  void setBudget(Bytes budget) { budget_ = budget; }

  struct Verdict {
    bool ok = true;
    std::optional<std::uint32_t> device;  // what lacks: memory of this device, else host memory
    Bytes need = 0;
    Bytes free = 0;
    std::string what;         // the limit that says no
    bool unmeasured = false;  // nobody knows what is free on the device
  };
  // A prepare looks before it books, and meanwhile its room may be given back: then nobody asks for
  // it any more.
  std::uint64_t ask(const JobName& waiter) { return asked_[waiter] = ++asks_; }
  bool isAsked(const JobName& waiter, std::uint64_t ask) const;
  // Books for `waiter`, or changes nothing. `kept`: bytes of all snapshots now. `free`: by device,
  // as measured; a device that is not in it could not be measured and has no room.
  Verdict book(const JobName& waiter, const Need& need, Bytes kept,
               const std::vector<HostLimit>& limits, const DeviceBytes& free);
  // What has been saved or restored is seen by measuring, and need not be promised any more.
  void saved(const JobName& outgoing, Bytes bytes, const DeviceBytes& freed);
  void restored(const JobName& waiter, const DeviceBytes& taken);
  void drop(const JobName& waiter);
  void clear();
  Bytes hostBooked() const;

private:
  Bytes booked(const HostLimit& limit) const;
  Bytes promised(std::uint32_t device) const;

  Bytes budget_;
  std::map<JobName, Need> booked_;
  std::map<JobName, std::uint64_t> asked_;  // the last of each waiter
  std::uint64_t asks_ = 0;
};

}  // namespace ts::node
