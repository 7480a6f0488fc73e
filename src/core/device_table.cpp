#include "device_table.h"

#include <algorithm>
#include <cassert>

#include "job.h"

namespace ts {

void Presence::add(Job& job) {
  auto at = std::find_if(jobs_.begin(), jobs_.end(),
                         [&](const auto& e) { return e.first->id >= job.id; });
  if (at != jobs_.end() && at->first == &job) return void(++at->second);
  jobs_.insert(at, {&job, 1});
}

void Presence::remove(Job& job) {
  auto at =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& e) { return e.first == &job; });
  assert(at != jobs_.end());
  if (--at->second == 0) jobs_.erase(at);
}

DeviceState& DeviceTable::at(Device id) {
  DeviceState& device = devices_[id];
  device.id = id;
  return device;
}

std::vector<DeviceState*> DeviceTable::at(const Devices& ids) {
  std::vector<DeviceState*> all;
  all.reserve(ids.size());
  for (Device id : ids) all.push_back(&at(id));
  return all;
}

const DeviceState* DeviceTable::foreign(const std::vector<DeviceState*>& devices, GroupId group) {
  auto at = std::find_if(devices.begin(), devices.end(),
                         [&](const DeviceState* d) { return d->claims > 0 && d->owner != group; });
  return at == devices.end() ? nullptr : *at;
}

void DeviceTable::claim(const std::vector<DeviceState*>& devices, GroupId group) {
  for (DeviceState* d : devices) {
    d->owner = group;
    ++d->claims;
  }
}

void DeviceTable::unclaim(const std::vector<DeviceState*>& devices) {
  for (DeviceState* d : devices) --d->claims;
}

}  // namespace ts
