// What the core can show of itself: for tsctl status and why, metrics, tests. Copies, no
// references.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts.h"
#include "ids.h"

namespace ts {

enum class JobPhase { Idle, Waiting, Switching, Holding, Parked, Faulted, Broken };

struct MemberView {
  MemberId member{};
  NodeId node{};
  Residency residency{};
  std::uint64_t bytes = 0;
  Devices devices;
};
struct JobView {
  JobId job{};
  GroupId group{};
  JobPhase phase = JobPhase::Idle;
  int priority = 0;
  std::uint32_t participants = 0;
  std::uint32_t entered = 0;
  Devices claim;
  Epoch epoch;                   // of the running slice, or of the last one
  std::optional<Instant> since;  // waiting since, or holding since
  std::uint32_t place = 0;       // in the queue, from 1; 0: not waiting
  Cause cause = Cause::None;     // why it waits or is faulted
  FaultKind fault = FaultKind::None;
  std::vector<JobId> waitsFor;  // who is before it, or on its devices
  std::string detail;
  std::vector<MemberView> members;
};
struct GroupView {
  GroupId group{};
  bool paused = false;
  std::vector<JobId> holders;
  std::vector<JobId> queue;  // in the policy's order
  std::uint64_t switches = 0;
};

}  // namespace ts
