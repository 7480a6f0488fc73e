// A status as a master tells it: two nodes, one holder, one waiter, one saved job with a fault.
#pragma once

#include "timeslice.capnp.h"

namespace ts::test {

inline void sampleJob(wire::JobStatus::Builder job, const char* name, const char* phase,
                      std::uint64_t sinceUs) {
  job.initKey().setGroup("rl");
  job.getKey().setName(name);
  job.setUid(1000);
  job.setPhase(phase);
  job.setParticipants(2);
  job.setSinceUs(sinceUs);
  auto claim = job.initClaim(2);
  claim[0].setNode("n0");
  claim[0].initDevices(2).set(1, 1);
  claim[1].setNode("n1");
  claim[1].initDevices(1);
}

inline void sampleMember(wire::JobStatus::Builder job, wire::Residency residency,
                         std::uint64_t bytes) {
  auto member = job.initMembers(1)[0];
  member.setNode("n0");
  member.initFact().setPid(4711);
  member.getFact().setResidency(residency);
  member.getFact().setBytes(bytes);
}

inline void sampleJobs(capnp::List<wire::JobStatus>::Builder jobs) {
  sampleJob(jobs[0], "a", "holding", 12'300'000);
  jobs[0].setEntered(2);
  jobs[0].initEpoch().setCounter(7);
  sampleMember(jobs[0], wire::Residency::RESIDENT, 31ull << 30);
  sampleJob(jobs[1], "b", "waiting", 4'000'000);
  jobs[1].setPlace(1);
  auto before = jobs[1].initWaitsFor(1)[0];
  before.setGroup("rl");
  before.setName("a");
  sampleMember(jobs[1], wire::Residency::SAVED, 20ull << 30);
  sampleJob(jobs[2], "c", "faulted", 1'500'000);
  jobs[2].setFault("restore");
  jobs[2].setDetail("CUDA_ERROR_UNKNOWN (999)");
}

inline void sampleStatus(wire::OperatorSession::StatusResults::Builder status) {
  status.setVersion("0.1.0");
  status.initGeneration().setNumber(3);
  status.getGeneration().setId(0xfedcba9876543210);
  status.setUptimeUs(7'200'000'000);
  auto group = status.initGroups(1)[0];
  group.setName("rl");
  group.setPolicy("fifo");
  group.initHolders(1).set(0, "a");
  group.initQueue(1).set(0, "b");
  group.setSwitches(412);
  sampleJobs(status.initJobs(3));
  auto nodes = status.initNodes(2);
  nodes[0].setName("n0");
  nodes[0].setState("up");
  nodes[0].setAddress("10.0.0.1:5000");
  nodes[0].setJobs(3);
  nodes[0].setSinceUs(60'000'000);
  auto devices = nodes[0].initDevices(2);
  for (unsigned i = 0; i < 2; ++i) {
    devices[i].setIndex(i);
    devices[i].setName("NVIDIA H200");
    devices[i].setTotalBytes(141ull << 30);
    devices[i].setFreeBytes(100ull << 30);
  }
  nodes[1].setName("n1");
  nodes[1].setState("suspect");
}

}  // namespace ts::test
