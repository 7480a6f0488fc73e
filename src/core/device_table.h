// Which devices exist, whose they are, what lies on them and who waits for them.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ids.h"
#include "lock_queue.h"

namespace ts {

struct Job;

// Jobs with something on a device, each with the number of its members there. A handful at most.
class Presence {
public:
  void add(Job& job);
  void remove(Job& job);
  bool empty() const { return jobs_.empty(); }
  bool onlyOf(const Job& job) const {
    return empty() || (jobs_.size() == 1 && jobs_[0].first == &job);
  }
  auto begin() const { return jobs_.begin(); }
  auto end() const { return jobs_.end(); }

private:
  std::vector<std::pair<Job*, int>> jobs_;  // by id of the job
};

struct DeviceState {
  Device id;
  GroupId owner{};           // "A device belongs to one group": the one whose jobs claim it
  std::uint32_t claims = 0;  // jobs of the owner that claim it
  std::uint32_t unsafe = 0;  // of these, how many name a node that has not reported yet
  Job* holder = nullptr;     // whose slice it is granted to
  Job* rescuer = nullptr;    // who must come back to it before anybody else may have it
  Presence present;          // state on the device
  Presence lingering;        // saved, and not seen to have left the device
  std::map<JobId, std::pair<Job*, int>> saved;  // state that left it and will come back
  LockQueue waiters;                            // those that hold others back

  // Nobody is on it, has it, or wants it.
  bool idle() const { return present.empty() && !holder && !rescuer && waiters.empty(); }
};

class DeviceTable {
public:
  DeviceState& at(Device id);
  std::vector<DeviceState*> at(const Devices& ids);

  // Claims for a group, if every device is free or its own; otherwise changes nothing and names one
  // that is not.
  static const DeviceState* foreign(const std::vector<DeviceState*>& devices, GroupId group);
  static void claim(const std::vector<DeviceState*>& devices, GroupId group);
  static void unclaim(const std::vector<DeviceState*>& devices);

private:
  struct Hash {
    std::size_t operator()(const Device& d) const {
      return (std::size_t(d.node) << 8U) ^ std::size_t(d.index);
    }
  };
  std::unordered_map<Device, DeviceState, Hash> devices_;
};

}  // namespace ts
