#include "master/directory.h"

namespace ts {

std::string_view describe(NodeState state) {
  switch (state) {
    case NodeState::Named:
      return "named";
    case NodeState::Up:
      return "up";
    case NodeState::Suspect:
      return "suspect";
    case NodeState::Dead:
      return "dead";
  }
  return "?";
}

// Nodes and groups: ids are indices, and they stay for the life of the master. -------------------

NodeRecord& Directory::node(const std::string& name) {
  auto& slot = nodes_[name];
  if (!slot) {
    slot = std::make_unique<NodeRecord>();
    slot->id = NodeId(nodesById_.size());
    slot->name = name;
    nodesById_.push_back(slot.get());
  }
  return *slot;
}

NodeRecord* Directory::findNode(const std::string& name) {
  auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : it->second.get();
}

GroupId Directory::group(const std::string& name) {
  auto [it, isNew] = groups_.try_emplace(name, GroupId(groupNames_.size()));
  if (isNew) groupNames_.push_back(name);
  return it->second;
}

const GroupId* Directory::findGroup(const std::string& name) const {
  auto it = groups_.find(name);
  return it == groups_.end() ? nullptr : &it->second;
}

// Jobs. ------------------------------------------------------------------------------------------

std::size_t Directory::NameHash::operator()(const JobName& name) const {
  std::hash<std::string> hash;
  return hash(name.group) * 31 + hash(name.name);
}

JobRecord* Directory::find(const JobName& name) {
  auto it = jobIds_.find(name);
  return it == jobIds_.end() ? nullptr : find(it->second);
}

JobRecord* Directory::find(JobId id) {
  auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

std::vector<JobRecord*> Directory::matching(const std::string& word) {
  std::vector<JobRecord*> found;
  if (auto slash = word.find('/'); slash != std::string::npos) {
    if (auto* job = find(JobName{word.substr(0, slash), word.substr(slash + 1)}))
      found.push_back(job);
    return found;
  }
  for (auto& [id, job] : jobs_)
    if (job.name.name == word) found.push_back(&job);
  return found;
}

JobRecord& Directory::add(const JobName& name, uid_t uid, const JobOptions& options) {
  JobId id{++lastJob_};
  jobIds_[name] = id;
  auto& job = jobs_[id];
  job.id = id;
  job.group = group(name.group);
  job.name = name;
  job.uid = uid;
  job.options = options;
  return job;
}

void Directory::remove(JobRecord& job) {
  jobIds_.erase(job.name);
  jobs_.erase(job.id);
}

bool Directory::place(JobRecord& job, NodeRecord& node) {
  if (!node.jobs.try_emplace(job.id, &job).second) return false;
  job.on.insert(node.id);
  tellNodes(job);
  return true;
}

void Directory::unplace(JobRecord& job, NodeRecord& node) {
  if (node.jobs.erase(job.id) == 0) return;
  job.on.erase(node.id);
  job.named.erase(node.id);
  job.whereaboutsTold.erase(node.id);
  if (!job.on.empty()) tellNodes(job);
}

std::set<std::string> Directory::nodesOf(const JobRecord& job) {
  std::set<std::string> names;
  for (NodeId id : job.on) names.insert(node(id).name);
  for (NodeId id : job.named)
    if (node(id).state == NodeState::Named) names.insert(node(id).name);
  return names;
}

// What nodes number themselves. ------------------------------------------------------------------

namespace {

template <class Map, class Key>
auto* lookUp(Map& map, Key key) {
  auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}
template <class Record>
Record* byNumber(const ByLocalNumber<Record>& map, std::uint64_t local) {
  auto it = map.find(local);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

ParticipantRecord* Directory::findParticipant(NodeRecord& node, std::uint64_t local) {
  return byNumber(node.participants, local);
}

ParticipantRecord* Directory::find(ParticipantId id) {
  return lookUp(participants_, id);
}

ParticipantRecord& Directory::addParticipant(NodeRecord& node, std::uint64_t local, JobRecord& job,
                                             std::uint64_t process) {
  ParticipantId id{++lastParticipant_};
  auto& record = participants_[id];
  record = {.id = id, .job = &job, .node = &node, .local = local, .process = process};
  node.participants[local] = &record;
  auto& entry = node.processes[process];
  if (entry.uses++ == 0) entry.id = ProcessId{++lastProcess_};
  ++job.participants;
  place(job, node);
  return record;
}

void Directory::remove(ParticipantRecord& participant) {
  while (!participant.requests.empty()) remove(*participant.requests.back());
  --participant.job->participants;
  NodeRecord& node = *participant.node;
  auto process = node.processes.find(participant.process);
  if (--process->second.uses == 0) node.processes.erase(process);
  node.participants.erase(participant.local);
  participants_.erase(participant.id);
}

ProcessId Directory::process(const ParticipantRecord& participant) const {
  return participant.node->processes.at(participant.process).id;
}

MemberRecord* Directory::findMember(NodeRecord& node, std::uint64_t local) {
  return byNumber(node.members, local);
}

MemberRecord* Directory::find(MemberId id) {
  return lookUp(members_, id);
}

MemberRecord& Directory::addMember(NodeRecord& node, std::uint64_t local, JobRecord& job,
                                   std::int32_t pid) {
  MemberId id{++lastMember_};
  auto& record = members_[id];
  record = {.id = id, .job = &job, .node = &node, .local = local, .pid = pid};
  node.members[local] = &record;
  ++job.members;
  place(job, node);
  return record;
}

void Directory::remove(MemberRecord& member) {
  --member.job->members;
  member.node->members.erase(member.local);
  members_.erase(member.id);
}

RequestRecord* Directory::findRequest(NodeRecord& node, std::uint64_t local) {
  return byNumber(node.requests, local);
}

RequestRecord* Directory::find(RequestId id) {
  return lookUp(requests_, id);
}

RequestRecord& Directory::addRequest(std::uint64_t local, ParticipantRecord& participant) {
  NodeRecord& node = *participant.node;
  RequestId id{++lastRequest_};
  auto& record = requests_[id];
  record = {.id = id, .participant = &participant, .node = &node, .local = local};
  node.requests[local] = &record;
  participant.requests.push_back(&record);
  return record;
}

void Directory::remove(RequestRecord& request) {
  std::erase(request.participant->requests, &request);
  request.node->requests.erase(request.local);
  requests_.erase(request.id);
}

}  // namespace ts
