// Who is here: jobs, their participants and members, and what is granted. Written through to the
// journal, so that a restarted daemon knows what it knew.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/journal.h"
#include "node/process.h"
#include "node/room.h"

namespace ts::node {

struct JobSpec {
  JobName key;
  uid_t uid = 0;
  std::uint32_t gang = 0;
  std::int32_t priority = 0;
  bool keepBroken = false;
  std::string backend;         // resolved: never empty
  std::uint32_t slurmJob = 0;  // whose step it is; 0: none of Slurm's
};

// An acquire that has not been answered.
struct Wait {
  RequestId request{};
  bool tryOnly = false;
  std::string phase;
  std::uint32_t ticketGeneration = 0;  // its place, as the master gave it
  std::uint64_t ticketNumber = 0;
  bool hasPlace() const { return ticketNumber != 0; }
};

struct Participant {
  ParticipantId id{};
  JobName job;
  Process process;
  std::vector<std::uint32_t> devices;
  bool joined = false;           // the master has said yes
  std::optional<Epoch> entered;  // the slice that it is in
  Epoch yielded;                 // the last slice that it gave back
  std::optional<Epoch> untold;   // a yield that the master has not confirmed
  bool departed = false;         // left or died, or its join is void; until the master is told
  bool died = false;
  bool atGate = false;  // of a task that has not joined by itself: the first of its processes does
  std::optional<Wait>
      wait;  // kept once it has a place: the caller asks again, and comes back to it
};

struct Member {
  MemberId id{};
  JobName job;
  Process process;
  Residency residency = Residency::Absent;
  DeviceBytes bytes;    // on each device when resident, in the snapshot when saved
  DeviceBytes residue;  // that stays while it is saved
  bool unreleased =
      false;           // its last save: what it took off the devices is not yet seen to be gone
  bool ended = false;  // it died; its memory may still be held
  bool mps = false;    // at the last look a client of MPS: it is neither stopped nor saved
  Bytes counted = 0;   // of it in Registry::savedBytes()
  Bytes total() const;
  DeviceBytes needed() const;  // to restore it: what is in the snapshot, less what stayed
};

struct Grant {
  Epoch epoch;
  std::vector<std::uint32_t> devices;
};

// A step of a Slurm job: its tasks, and what they start, are the job's.
struct Step {
  Process daemon;  // its slurmstepd
  std::uint32_t slurmJob = 0;
  std::uint32_t slurmStep = 0;
  JobName key;
  uid_t uid = 0;
  std::vector<std::uint32_t> devices;
};

// What turns a step has had, for the job's last line.
struct StepAccount {
  std::uint32_t slurmJob = 0;
  std::uint32_t slurmStep = 0;
  Epoch epoch;  // of its last turn
  std::uint64_t turns = 0;
  std::uint64_t waitedUs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t heldUs = 0;
  std::uint64_t sinceUs =
      0;  // when the turn began that it has, by the machine's clock; 0: it has none
};

struct Job {
  JobSpec spec;
  std::set<ParticipantId> participants;
  std::set<MemberId> members;
  std::optional<Grant> grant;
  std::set<std::string> nodes;  // all that it is on, as the master said; empty: this one alone
  Gathering gathered = Gathering::Unknown;  // as the master said
};

class Registry {
public:
  explicit Registry(Records& records);  // with what an earlier life has kept

  // Ids are never used twice, also not by a later life of the daemon.
  std::uint64_t newId();

  Job* job(const JobName& name);
  const std::map<JobName, Job>& jobs() const { return jobs_; }
  Job& addJob(const JobSpec& spec);
  void eraseJob(const JobName& name);  // without participants and members
  void setNodes(const JobName& name, std::set<std::string> nodes);
  void setGathered(const JobName& name, Gathering gathered);

  Participant* participant(ParticipantId id);
  Participant* participantOf(const Identity& identity);  // that has not departed
  const std::map<ParticipantId, Participant>& participants() const { return participants_; }
  std::map<ParticipantId, Participant>& participants() { return participants_; }
  Participant& add(Participant participant);
  void erase(ParticipantId id);
  // Another process of the same task has its place from here on.
  void reseat(Participant& participant, const Process& process);

  Member* member(MemberId id);
  Member* memberOf(const Identity& identity);
  const std::map<MemberId, Member>& members() const { return members_; }
  std::map<MemberId, Member>& members() { return members_; }
  Member& add(Member member);
  void erase(MemberId id);
  std::vector<Member*> membersOf(const JobName& job);

  const std::map<Identity, Step>& steps() const { return steps_; }
  void add(const Step& step);
  void eraseStep(const Identity& daemon);
  // By name, and by the number of the Slurm job: a heterogeneous job has several of one name.
  const Step* stepOf(const JobName& key) const;
  std::vector<Step> stepsOf(std::uint32_t slurmJob) const;
  // Of a Slurm job's steps, ended ones too, for as long as one of them runs here.
  StepAccount* account(const JobName& key);
  std::vector<const StepAccount*> accountsOf(std::uint32_t slurmJob) const;
  void record(const JobName& key, const StepAccount& account);
  void eraseAccounts(std::uint32_t slurmJob);

  // To be called after each change of one, in the order in which a later life must find them.
  void record(const Participant& participant);
  void record(Member& member);
  // The slice begins for those, or ends for one. What cannot be written down throws and has not
  // happened: of a turn that the master takes back nothing may be left.
  void enter(const std::vector<ParticipantId>& those, const Epoch& epoch);
  void leave(Participant& participant, const Epoch& epoch);
  // The place of a waiter, and that it waits no more.
  void recordWait(const Participant& participant);
  void forgetWait(ParticipantId participant);

  // The job to whom a device is granted.
  const JobName* grantedTo(std::uint32_t device) const;
  void setGrant(const JobName& job, Grant grant);
  void clearGrant(const JobName& job);
  // The highest epoch that was ever granted on a device: orders with an older one are stale.
  Epoch highest(std::uint32_t device) const;

  Generation generation() const { return generation_; }
  void setGeneration(const Generation& generation);

  Bytes savedBytes() const { return saved_; }  // of all snapshots

  // Why nothing new should be begun: there is no room to write it down. Or nothing.
  std::string whyFull() { return records_.whyFull(); }

  // What processes need to come back that were saved by hand and belong to no job.
  const std::map<Identity, DeviceBytes>& savedByHand() const { return savedByHand_; }
  const DeviceBytes* savedByHand(const Identity& process) const;
  void setSavedByHand(const Identity& process, const DeviceBytes& bytes);
  void forgetSavedByHand(const Identity& process);

private:
  void load();
  void loadParticipant(const Participant& participant);
  void loadWait(ParticipantId id, const std::string& text);
  Job& known(const JobName& name);
  void count(Member& member);

  Records& records_;
  std::uint64_t nextId_ = 1;
  std::uint64_t reservedIds_ = 0;
  Generation generation_;
  std::map<JobName, Job> jobs_;
  std::map<ParticipantId, Participant> participants_;
  std::map<MemberId, Member> members_;
  Bytes saved_ = 0;
  std::map<Identity, ParticipantId> byParticipant_;
  std::map<Identity, MemberId> byMember_;
  void index(const Step& step);

  std::map<Identity, Step> steps_;  // by its slurmstepd
  std::map<JobName, std::set<Identity>> stepsByName_;
  std::map<std::uint32_t, std::set<Identity>> stepsByJob_;
  std::map<JobName, StepAccount> accounts_;
  std::map<std::uint32_t, std::set<JobName>> accountsByJob_;
  std::map<std::uint32_t, JobName> granted_;
  std::map<std::uint32_t, Epoch> highest_;
  std::map<Identity, DeviceBytes> savedByHand_;
};

}  // namespace ts::node
