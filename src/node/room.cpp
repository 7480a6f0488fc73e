#include "node/room.h"

#include <algorithm>

namespace ts::node {
namespace {

// Sums that cannot wrap: too much stays too much.
Bytes plus(Bytes a, Bytes b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
Bytes minus(Bytes a, Bytes b) {
  return a > b ? a - b : 0;
}

bool bounds(const HostLimit& limit, const JobName& job) {
  return limit.jobs.empty() || std::ranges::find(limit.jobs, job) != limit.jobs.end();
}

Bytes hostUnder(const HostLimit& limit, const Need& need) {
  Bytes sum = 0;
  for (const auto& [job, bytes] : need.host) {
    if (bounds(limit, job)) sum = plus(sum, bytes);
  }
  return sum;
}

Bytes at(const DeviceBytes& bytes, std::uint32_t device) {
  auto it = bytes.find(device);
  return it == bytes.end() ? 0 : it->second;
}

void take(DeviceBytes& from, const DeviceBytes& bytes) {
  for (const auto& [device, n] : bytes) {
    auto it = from.find(device);
    if (it != from.end()) it->second = minus(it->second, n);
  }
}

}  // namespace

Bytes Bookings::booked(const HostLimit& limit) const {
  Bytes sum = 0;
  for (const auto& [waiter, need] : booked_) sum = plus(sum, hostUnder(limit, need));
  return sum;
}

Bytes Bookings::hostBooked() const {
  return booked({});
}

// What other switches will take from a device beyond what they free there.
Bytes Bookings::promised(std::uint32_t device) const {
  Bytes sum = 0;
  for (const auto& [waiter, need] : booked_) {
    sum = plus(sum, minus(at(need.takes, device), at(need.frees, device)));
  }
  return sum;
}

Bookings::Verdict Bookings::book(const JobName& waiter, const Need& need, Bytes kept,
                                 const std::vector<HostLimit>& limits, const DeviceBytes& free) {
  auto before = booked_.extract(waiter);  // a repeated prepare replaces the first
  auto refuse = [&](Verdict verdict) {
    if (!before.empty()) booked_.insert(std::move(before));
    return verdict;
  };
  auto all = limits;
  if (budget_ > 0) all.push_back({"host_budget", minus(budget_, kept), {}});
  for (const auto& limit : all) {
    Bytes wanted = hostUnder(limit, need);
    Bytes room = minus(limit.room, booked(limit));
    if (wanted > 0 && wanted > room) return refuse({false, {}, wanted, room, limit.name});
  }
  for (const auto& [device, wanted] : need.takes) {
    if (wanted == 0) continue;
    if (!free.contains(device)) {
      return refuse({false, device, wanted, 0, "device " + std::to_string(device), true});
    }
    Bytes room = minus(plus(at(free, device), at(need.frees, device)), promised(device));
    if (wanted > room) {
      return refuse({false, device, wanted, room, "device " + std::to_string(device)});
    }
  }
  booked_[waiter] = need;
  return {};
}

bool Bookings::isAsked(const JobName& waiter, std::uint64_t ask) const {
  auto it = asked_.find(waiter);
  return it != asked_.end() && it->second == ask;
}

void Bookings::drop(const JobName& waiter) {
  booked_.erase(waiter);
  asked_.erase(waiter);
}

void Bookings::clear() {
  booked_.clear();
  asked_.clear();
}

void Bookings::saved(const JobName& outgoing, Bytes bytes, const DeviceBytes& freed) {
  for (auto& [waiter, need] : booked_) {
    auto it = need.host.find(outgoing);
    if (it == need.host.end()) continue;
    it->second = minus(it->second, bytes);
    take(need.frees, freed);
  }
}

void Bookings::restored(const JobName& waiter, const DeviceBytes& taken) {
  auto it = booked_.find(waiter);
  if (it != booked_.end()) take(it->second.takes, taken);
}

}  // namespace ts::node
