#include "node/registry.h"

#include <kj/debug.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "node/record_text.h"
#include "node/words.h"

namespace ts::node {
namespace {

constexpr std::uint64_t kIdsAtOnce = 4096;  // reserved by one record

std::string jobRecord(const JobName& job) {
  return "job/" + text(job);
}
std::string grantRecord(const JobName& job) {
  return "grant/" + text(job);
}
std::string nodesRecord(const JobName& job) {
  return "nodes/" + text(job);
}
std::string gatheredRecord(const JobName& job) {
  return "gathered/" + text(job);
}
std::string participantRecord(ParticipantId id) {
  return "participant/" + std::to_string(std::uint64_t(id));
}
std::string waitRecord(ParticipantId id) {
  return "wait/" + std::to_string(std::uint64_t(id));
}
std::string memberRecord(MemberId id) {
  return "member/" + std::to_string(std::uint64_t(id));
}
std::string byHandRecord(const Identity& process) {
  return "by-hand/" + std::to_string(process.pid) + "/" + std::to_string(process.startTime);
}
std::string stepRecord(const Identity& daemon) {
  return "step/" + std::to_string(daemon.pid) + "/" + std::to_string(daemon.startTime);
}
std::string accountRecord(const JobName& step) {
  return "account/" + text(step);
}
std::string epochRecord(std::uint32_t device) {
  return "epoch/" + std::to_string(device);
}

// Of what follows the kind in a record's name.
JobName jobIn(const std::string& rest) {
  auto slash = rest.find('/');
  if (slash == std::string::npos) throw std::invalid_argument("it names no job");
  return {rest.substr(0, slash), rest.substr(slash + 1)};
}

}  // namespace

Bytes Member::total() const {
  Bytes sum = 0;
  for (const auto& [device, n] : bytes) sum += n;
  return sum;
}

DeviceBytes Member::needed() const {
  DeviceBytes out = bytes;
  for (auto& [device, n] : out) {
    auto stayed = residue.find(device);
    if (stayed != residue.end()) n -= std::min(n, stayed->second);
  }
  return out;
}

Registry::Registry(Records& records) : records_(records) {
  load();
}

// A record of a job that is not there can be of no use.
Job& Registry::known(const JobName& name) {
  auto* found = job(name);
  if (!found) throw std::invalid_argument("there is no job " + text(name));
  return *found;
}

void Registry::load() {
  using Text = const std::string&;
  records_.each("ids", [&](Text, Text v) { nextId_ = reservedIds_ = decodeNumber(v); });
  records_.each("generation", [&](Text, Text v) {
    auto g = decodeGrant(v).epoch;
    generation_ = {g.generation, g.counter};
  });
  records_.each("job/", [&](Text, Text v) {
    auto spec = decodeSpec(v);
    jobs_[spec.key].spec = spec;
  });
  records_.each("participant/", [&](Text, Text v) { loadParticipant(decodeParticipant(v)); });
  records_.each("wait/",
                [&](Text rest, Text v) { loadWait(ParticipantId{decodeNumber(rest)}, v); });
  records_.each("member/", [&](Text, Text v) {
    auto m = decodeMember(v);
    known(m.job).members.insert(m.id);
    byMember_[m.process.identity] = m.id;
    count(members_[m.id] = m);
  });
  records_.each("grant/", [&](Text rest, Text v) {
    JobName name = jobIn(rest);
    auto& grant = known(name).grant.emplace(decodeGrant(v));
    for (auto d : grant.devices) granted_[d] = name;
  });
  records_.each("nodes/", [&](Text rest, Text v) { known(jobIn(rest)).nodes = decodeNodes(v); });
  std::vector<JobName> orphans;  // a daemon of an earlier release ends a job and leaves it behind
  records_.each("gathered/", [&](Text rest, Text v) {
    Job* j = job(jobIn(rest));
    if (!j) return orphans.push_back(jobIn(rest));
    j->gathered = v == "yes" ? Gathering::Yes : Gathering::No;
  });
  for (const auto& name : orphans) records_.erase(gatheredRecord(name));
  records_.each("epoch/", [&](Text rest, Text v) {
    highest_[std::uint32_t(decodeNumber(rest))] = decodeGrant(v).epoch;
  });
  records_.each("step/", [&](Text, Text v) {
    auto step = decodeStep(v);
    index(step);
    steps_[step.daemon.identity] = std::move(step);
  });
  records_.each("account/", [&](Text rest, Text v) {
    auto& account = accounts_[jobIn(rest)] = decodeAccount(v);
    accountsByJob_[account.slurmJob].insert(jobIn(rest));
  });
  records_.each("by-hand/", [&](Text, Text v) { savedByHand_.insert(decodeByHand(v)); });
}

void Registry::loadParticipant(const Participant& p) {
  known(p.job).participants.insert(p.id);
  if (!p.departed) byParticipant_[p.process.identity] = p.id;
  participants_[p.id] = p;
}

void Registry::loadWait(ParticipantId id, const std::string& text) {
  auto* p = participant(id);
  if (!p) throw std::invalid_argument("there is no such participant");
  p->wait = decodeWait(text);
}

std::uint64_t Registry::newId() {
  if (nextId_ >= reservedIds_) {
    reservedIds_ = nextId_ + kIdsAtOnce;
    records_.put("ids", std::to_string(reservedIds_));
  }
  return nextId_++;
}

Job* Registry::job(const JobName& name) {
  auto it = jobs_.find(name);
  return it == jobs_.end() ? nullptr : &it->second;
}

Job& Registry::addJob(const JobSpec& spec) {
  records_.put(jobRecord(spec.key), encode(spec));
  auto& job = jobs_[spec.key];
  job.spec = spec;
  return job;
}

void Registry::eraseJob(const JobName& name) {
  clearGrant(name);
  setNodes(name, {});
  setGathered(name, Gathering::Unknown);
  records_.erase(jobRecord(name));
  jobs_.erase(name);
}

void Registry::setNodes(const JobName& name, std::set<std::string> nodes) {
  Job* j = job(name);
  if (!j || j->nodes == nodes) return;
  if (nodes.empty()) {
    records_.erase(nodesRecord(name));
  } else {
    records_.put(nodesRecord(name), encode(nodes));
  }
  j->nodes = std::move(nodes);  // what is not written down is not said either
}

void Registry::setGathered(const JobName& name, Gathering gathered) {
  Job* j = job(name);
  if (!j || j->gathered == gathered) return;
  if (gathered == Gathering::Unknown) {
    records_.erase(gatheredRecord(name));
  } else {
    records_.put(gatheredRecord(name), gathered == Gathering::Yes ? "yes" : "no");
  }
  j->gathered = gathered;
}

Participant* Registry::participant(ParticipantId id) {
  auto it = participants_.find(id);
  return it == participants_.end() ? nullptr : &it->second;
}

Participant* Registry::participantOf(const Identity& identity) {
  auto it = byParticipant_.find(identity);
  return it == byParticipant_.end() ? nullptr : participant(it->second);
}

Participant& Registry::add(Participant p) {
  auto& job = jobs_.at(p.job);
  job.participants.insert(p.id);
  byParticipant_[p.process.identity] = p.id;
  auto& kept = participants_[p.id] = std::move(p);
  record(kept);
  return kept;
}

void Registry::erase(ParticipantId id) {
  auto& p = participants_.at(id);
  jobs_.at(p.job).participants.erase(id);
  auto it = byParticipant_.find(p.process.identity);
  if (it != byParticipant_.end() && it->second == id) byParticipant_.erase(it);
  participants_.erase(id);
  std::array<Records::Change, 2> changes{
      {{participantRecord(id), "", true}, {waitRecord(id), "", true}}};
  records_.keep(changes);
}

void Registry::reseat(Participant& p, const Process& process) {
  byParticipant_.erase(p.process.identity);
  p.process = process;
  p.atGate = false;
  byParticipant_[process.identity] = p.id;
  record(p);
}

void Registry::add(const Step& step) {
  records_.put(stepRecord(step.daemon.identity), encode(step));
  steps_[step.daemon.identity] = step;
  index(step);
}

void Registry::index(const Step& step) {
  stepsByName_[step.key].insert(step.daemon.identity);
  stepsByJob_[step.slurmJob].insert(step.daemon.identity);
}

void Registry::eraseStep(const Identity& daemon) {
  auto it = steps_.find(daemon);
  if (it == steps_.end()) return;
  auto drop = [&](auto& index, const auto& key) {
    index[key].erase(daemon);
    if (index[key].empty()) index.erase(key);
  };
  drop(stepsByName_, it->second.key);
  drop(stepsByJob_, it->second.slurmJob);
  steps_.erase(it);
  records_.erase(stepRecord(daemon));
}

const Step* Registry::stepOf(const JobName& key) const {
  auto it = stepsByName_.find(key);
  return it == stepsByName_.end() ? nullptr : &steps_.at(*it->second.begin());
}

std::vector<Step> Registry::stepsOf(std::uint32_t slurmJob) const {
  std::vector<Step> out;
  auto it = stepsByJob_.find(slurmJob);
  if (it == stepsByJob_.end()) return out;
  for (const auto& daemon : it->second) out.push_back(steps_.at(daemon));
  return out;
}

StepAccount* Registry::account(const JobName& key) {
  auto it = accounts_.find(key);
  return it == accounts_.end() ? nullptr : &it->second;
}

std::vector<const StepAccount*> Registry::accountsOf(std::uint32_t slurmJob) const {
  std::vector<const StepAccount*> out;
  auto it = accountsByJob_.find(slurmJob);
  if (it == accountsByJob_.end()) return out;
  for (const auto& key : it->second) out.push_back(&accounts_.at(key));
  return out;
}

void Registry::record(const JobName& key, const StepAccount& account) {
  records_.put(accountRecord(key), encode(account));
  accountsByJob_[account.slurmJob].insert(key);
  accounts_[key] = account;
}

void Registry::eraseAccounts(std::uint32_t slurmJob) {
  auto it = accountsByJob_.find(slurmJob);
  if (it == accountsByJob_.end()) return;
  for (const auto& key : it->second) {
    records_.erase(accountRecord(key));
    accounts_.erase(key);
  }
  accountsByJob_.erase(it);
}

Member* Registry::member(MemberId id) {
  auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

Member* Registry::memberOf(const Identity& identity) {
  auto it = byMember_.find(identity);
  return it == byMember_.end() ? nullptr : member(it->second);
}

Member& Registry::add(Member m) {
  jobs_.at(m.job).members.insert(m.id);
  byMember_[m.process.identity] = m.id;
  auto& kept = members_[m.id] = std::move(m);
  record(kept);
  return kept;
}

void Registry::erase(MemberId id) {
  auto& m = members_.at(id);
  jobs_.at(m.job).members.erase(id);
  byMember_.erase(m.process.identity);
  saved_ -= m.counted;
  members_.erase(id);
  records_.erase(memberRecord(id));
}

std::vector<Member*> Registry::membersOf(const JobName& name) {
  std::vector<Member*> out;
  if (Job* j = job(name)) {
    for (auto id : j->members) out.push_back(&members_.at(id));
  }
  return out;
}

void Registry::record(const Participant& p) {
  // Departed: the process may join again under a new id before the master has confirmed.
  auto it = byParticipant_.find(p.process.identity);
  if (p.departed && it != byParticipant_.end() && it->second == p.id) byParticipant_.erase(it);
  records_.put(participantRecord(p.id), encode(p));
}

void Registry::enter(const std::vector<ParticipantId>& those, const Epoch& epoch) {
  std::vector<Records::Change> changes;
  auto begin = [&](Participant& p) {
    p.entered = epoch;
    p.untold.reset();
  };
  for (auto id : those) {
    auto inside = participants_.at(id);
    begin(inside);
    changes.push_back({participantRecord(id), encode(inside), false});
    if (inside.wait && inside.wait->hasPlace()) changes.push_back({waitRecord(id), "", true});
  }
  if (!changes.empty()) records_.keep(changes);
  for (auto id : those) begin(participants_.at(id));
}

void Registry::leave(Participant& p, const Epoch& epoch) {
  auto out = p;
  out.entered.reset();
  out.yielded = epoch;
  out.untold = epoch;
  record(out);
  p = std::move(out);
}

void Registry::recordWait(const Participant& p) {
  records_.put(waitRecord(p.id), encode(*p.wait));
}

void Registry::forgetWait(ParticipantId id) {
  auto name = waitRecord(id);
  if (records_.all().contains(name)) records_.erase(name);
}

// A node may have thousands of members, and is asked at each prepare.
void Registry::count(Member& m) {
  saved_ -= std::exchange(m.counted, m.residency == Residency::Saved && !m.ended ? m.total() : 0);
  saved_ += m.counted;
}

void Registry::record(Member& m) {
  count(m);
  records_.put(memberRecord(m.id), encode(m));
}

const JobName* Registry::grantedTo(std::uint32_t device) const {
  auto it = granted_.find(device);
  return it == granted_.end() ? nullptr : &it->second;
}

void Registry::setGrant(const JobName& name, Grant grant) {
  std::vector<Records::Change> changes{{grantRecord(name), encode(grant), false}};
  auto& job = jobs_.at(name);
  for (auto d : grant.devices)
    changes.push_back({epochRecord(d), encode(Grant{grant.epoch, {}}), false});
  records_.keep(changes);  // first: who cannot write it down has granted nothing
  if (job.grant) {
    for (auto d : job.grant->devices) granted_.erase(d);
  }
  for (auto d : grant.devices) {
    granted_[d] = name;
    highest_[d] = grant.epoch;
  }
  job.grant = std::move(grant);
}

void Registry::clearGrant(const JobName& name) {
  Job* j = job(name);
  if (!j || !j->grant) return;
  for (auto d : j->grant->devices) granted_.erase(d);
  j->grant.reset();
  records_.erase(grantRecord(name));
}

Epoch Registry::highest(std::uint32_t device) const {
  auto it = highest_.find(device);
  return it == highest_.end() ? Epoch{} : it->second;
}

void Registry::setGeneration(const Generation& generation) {
  if (generation == generation_) return;
  Grant asText{{generation.number, generation.id}, {}};
  records_.put("generation", encode(asText));
  generation_ = generation;
}

const DeviceBytes* Registry::savedByHand(const Identity& process) const {
  auto it = savedByHand_.find(process);
  return it == savedByHand_.end() ? nullptr : &it->second;
}

void Registry::setSavedByHand(const Identity& process, const DeviceBytes& bytes) {
  savedByHand_[process] = bytes;
  records_.put(byHandRecord(process), encode(process, bytes));
}

void Registry::forgetSavedByHand(const Identity& process) {
  if (savedByHand_.erase(process) > 0) records_.erase(byHandRecord(process));
}

}  // namespace ts::node
