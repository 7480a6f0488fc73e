// Who and what is known, across groups: nodes, devices, jobs, participants, requests, open orders.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "cluster.h"
#include "device_table.h"
#include "group.h"
#include "job.h"
#include "orders.h"
#include "timers.h"

namespace ts {

struct Node {
  enum class State { Unknown, Reporting, Up, Suspect, Dead };

  State state = State::Unknown;
  bool drained = false;
  bool answered = false;  // reported in this generation, or a verdict was given
  Devices devices;
  std::map<JobId, Job*> jobs;  // that name it
  bool unheard = false;        // declared dead before it ever reported
  bool returning = false;      // reports after it was declared dead
  std::set<JobId> condemned;   // what it then reported: on its way out
};

struct MemberRef {
  Job* job;
  Member* member;
};

struct Roster {
  ClusterConfig config;
  std::optional<Instant> startedAt;
  std::map<GroupId, std::unique_ptr<Group>> groups;
  std::map<NodeId, Node> nodes;
  DeviceTable devices;
  std::unordered_map<JobId, Job> jobs;  // never iterated: its order means nothing
  std::unordered_map<ParticipantId, Participant*> participants;
  std::unordered_map<MemberId, MemberRef> members;
  std::unordered_map<RequestId, Participant*> requests;  // those that wait
  std::unordered_map<ProcessId, std::vector<Participant*>> processes;
  Orders orders;
  Timers timers;
  std::uint64_t epochs = 0;
  std::uint64_t tickets = 0;
  std::set<GroupId> poked;  // something of theirs was changed by another group

  Group* group(GroupId id) {
    auto it = groups.find(id);
    return it == groups.end() ? nullptr : it->second.get();
  }
  Job* job(JobId id) {
    auto it = jobs.find(id);
    return it == jobs.end() ? nullptr : &it->second;
  }
  Participant* participant(ParticipantId id) {
    auto it = participants.find(id);
    return it == participants.end() ? nullptr : it->second;
  }
  bool up(NodeId id) const {
    auto it = nodes.find(id);
    return it != nodes.end() && it->second.state == Node::State::Up;
  }
  bool inGrace(Instant now) const {
    return config.recovering && startedAt && now < *startedAt + config.recoveryGrace;
  }
};

}  // namespace ts
