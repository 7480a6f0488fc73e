// Who is who: names and numbers of the wire on one side, ids of the core on the other. Hash maps
// throughout: with 10,000 jobs nothing here looks at more than one of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "wire/translate.h"

namespace ts {

class NodeLink;  // a node's live session, see node_link.h

struct DeviceRecord {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::uint64_t totalBytes = 0;
  std::uint64_t freeBytes = 0;  // as last reported
};

enum class NodeState { Named, Up, Suspect, Dead };  // Named: only known from reports of others
std::string_view describe(NodeState state);

// What a node numbered itself, and the id that the core knows it by.
template <class Record>
using ByLocalNumber = std::unordered_map<std::uint64_t, Record*>;

struct JobRecord;
struct ParticipantRecord;
struct MemberRecord;
struct RequestRecord;

struct NodeRecord {
  struct Process {
    ProcessId id{};
    std::uint32_t uses = 0;
  };

  NodeId id{};
  std::string name;
  std::string address;         // of its last session
  std::uint64_t instance = 0;  // the life of its daemon in its last session
  std::vector<DeviceRecord> devices;
  NodeState state = NodeState::Named;
  bool drained = false;
  bool reported = false;     // to this master
  Instant since;             // when `state` began
  NodeLink* link = nullptr;  // set while a session lives
  ByLocalNumber<ParticipantRecord> participants;
  ByLocalNumber<MemberRecord> members;
  ByLocalNumber<RequestRecord> requests;
  std::unordered_map<std::uint64_t, Process> processes;
  std::unordered_map<JobId, JobRecord*> jobs;
  std::set<OperationId> open;  // orders without an end, in the order they were given
};

// What the nodes of a job keep of it for a master that knows nothing.
struct Whereabouts {
  std::set<std::string> nodes;              // all that it is on
  Gathering gathered = Gathering::Unknown;  // of a gang of several
  bool operator==(const Whereabouts&) const = default;
};

struct JobRecord {
  JobId id{};
  GroupId group{};
  JobName name;
  uid_t uid = 0;
  JobOptions options;
  std::set<NodeId> on;     // that have something of it
  std::set<NodeId> named;  // that reports of others said so of
  std::map<NodeId, std::shared_ptr<const Whereabouts>> whereaboutsTold;
  std::uint32_t participants = 0;
  std::uint32_t members = 0;
  std::uint32_t slurmJob = 0;  // 0: it is no step of one
  bool suspended = false;      // by Slurm
  Epoch epoch;                 // of its last grant
  std::string label;           // of its last acquire: the phase of its work
  std::string broken;          // which process of its gang was lost, once one was
  Instant grantedAt;
  Instant switchSince;
};

struct ParticipantRecord {
  ParticipantId id{};
  JobRecord* job = nullptr;
  NodeRecord* node = nullptr;
  std::uint64_t local = 0;
  std::uint64_t process = 0;  // the node's number
  std::int32_t pid = 0;       // for people
  std::vector<RequestRecord*> requests;
};

struct MemberRecord {
  MemberId id{};
  JobRecord* job = nullptr;
  NodeRecord* node = nullptr;
  std::uint64_t local = 0;
  std::int32_t pid = 0;
};

struct RequestRecord {
  RequestId id{};
  ParticipantRecord* participant = nullptr;
  NodeRecord* node = nullptr;
  std::uint64_t local = 0;
  bool granting = false;  // an order to grant it is open
};

class Directory {
public:
  NodeRecord& node(const std::string& name);  // made when unknown
  NodeRecord* findNode(const std::string& name);
  NodeRecord& node(NodeId id) { return *nodesById_[std::size_t(id)]; }
  const std::vector<NodeRecord*>& nodes() const { return nodesById_; }

  GroupId group(const std::string& name);  // made when unknown
  const std::string& name(GroupId group) const { return groupNames_[std::size_t(group)]; }
  const GroupId* findGroup(const std::string& name) const;
  std::size_t groups() const { return groupNames_.size(); }

  JobRecord* find(const JobName& name);
  JobRecord* find(JobId id);
  // By a person's word: NAME where that is unique, or GROUP/NAME.
  std::vector<JobRecord*> matching(const std::string& word);
  JobRecord& add(const JobName& name, uid_t uid, const JobOptions& options);
  void remove(JobRecord& job);
  const std::unordered_map<JobId, JobRecord>& jobs() const { return jobs_; }

  // A node has something of the job: true when that is new. Both are idempotent.
  bool place(JobRecord& job, NodeRecord& node);
  void unplace(JobRecord& job, NodeRecord& node);
  // Where the job is, by names: nodes that have told so, and those that others name and that have
  // not been heard yet.
  std::set<std::string> nodesOf(const JobRecord& job);
  // Its whereabouts may have changed: whose nodes are to be told, once.
  void tellNodes(const JobRecord& job) { untold_.insert(job.id); }
  bool hasUntold() const { return !untold_.empty(); }
  std::set<JobId> takeUntold() { return std::exchange(untold_, {}); }

  ParticipantRecord* findParticipant(NodeRecord& node, std::uint64_t local);
  ParticipantRecord* find(ParticipantId id);
  ParticipantRecord& addParticipant(NodeRecord& node, std::uint64_t local, JobRecord& job,
                                    std::uint64_t process);
  void remove(ParticipantRecord& participant);  // and its requests
  ProcessId process(const ParticipantRecord& participant) const;

  MemberRecord* findMember(NodeRecord& node, std::uint64_t local);
  MemberRecord* find(MemberId id);
  MemberRecord& addMember(NodeRecord& node, std::uint64_t local, JobRecord& job, std::int32_t pid);
  void remove(MemberRecord& member);

  RequestRecord* findRequest(NodeRecord& node, std::uint64_t local);
  RequestRecord* find(RequestId id);
  RequestRecord& addRequest(std::uint64_t local, ParticipantRecord& participant);
  void remove(RequestRecord& request);

private:
  struct NameHash {
    std::size_t operator()(const JobName& name) const;
  };

  std::unordered_map<std::string, std::unique_ptr<NodeRecord>> nodes_;
  std::vector<NodeRecord*> nodesById_;
  std::unordered_map<std::string, GroupId> groups_;
  std::vector<std::string> groupNames_;
  std::unordered_map<JobName, JobId, NameHash> jobIds_;
  std::unordered_map<JobId, JobRecord> jobs_;
  std::unordered_map<ParticipantId, ParticipantRecord> participants_;
  std::unordered_map<MemberId, MemberRecord> members_;
  std::unordered_map<RequestId, RequestRecord> requests_;
  std::set<JobId> untold_;
  std::uint32_t lastJob_ = 0;
  std::uint64_t lastParticipant_ = 0;
  std::uint64_t lastMember_ = 0;
  std::uint64_t lastRequest_ = 0;
  std::uint64_t lastProcess_ = 0;
};

}  // namespace ts
