// Names and time as the core sees them: no bare integers, no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <vector>

namespace ts {

// All ids are chosen by the shell that drives the core, never reused within one life of it.
enum class GroupId : std::uint32_t {};
enum class JobId : std::uint32_t {};
enum class NodeId : std::uint32_t {};
enum class ParticipantId : std::uint64_t {};  // a process that joined and takes turns
enum class ProcessId : std::uint64_t {};      // the same process in two groups has the same one
enum class MemberId : std::uint64_t {};       // a process with device state; members are moved
enum class RequestId : std::uint64_t {};      // one acquire call
enum class OperationId : std::uint64_t {};    // one order to a node; chosen by the core, only grows

// A fencing token: grows with every grant, and with every life of the master.
struct Epoch {
  std::uint32_t generation = 0;
  std::uint64_t counter = 0;
  auto operator<=>(const Epoch&) const = default;
};

// One device of one node, by its index in the node's inventory.
struct Device {
  NodeId node{};
  std::uint32_t index = 0;
  auto operator<=>(const Device&) const = default;
};
using Devices = std::vector<Device>;  // sorted, no duplicates

inline bool within(const Devices& whole, const Devices& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// The core never reads a clock: every step is told what time it is. Microseconds keep a switch
// without anything to move measurable.
struct CoreClock {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoreClock>;
  static constexpr bool is_steady = true;
};
using Instant = CoreClock::time_point;
using Duration = CoreClock::duration;

}  // namespace ts
