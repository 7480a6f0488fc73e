// The end of a walk: everything is mended and let run, and everybody gets a turn.
#include <algorithm>
#include <set>
#include <utility>

#include "core/describe.h"
#include "world.h"

namespace ts::test {
namespace {

std::string digits(std::uint64_t n) {
  return std::to_string(n);
}

// Who is meant, by value: what is done to one may remove it, and others.
template <class Map, class Chosen>
auto idsOf(const Map& map, Chosen chosen) {
  std::vector<typename Map::key_type> ids;
  for (const auto& [id, value] : map) {
    if (chosen(value)) ids.push_back(id);
  }
  return ids;
}

}  // namespace

void World::drain() {
  draining_ = true;
  hear();
  mendAll();
  settle();
  noWaiterIsLeft("a waiter is forgotten: ");
  for (auto& [id, j] : jobs_) {
    j.wasGranted = j.odd = false;
    j.stuck.clear();
  }
  // One after another: what waits for itself elsewhere is refused.
  for (JobId job : idsOf(jobs_, [](const Job&) { return true; })) {
    askFor(job);
    settle();
  }
  noWaiterIsLeft("a waiter is forgotten in the end: ");
  for (const auto& [where, room] : rooms_) {
    if (room.held) throw Broken("room is booked in the end, for " + text(where.second));
  }
  everyJobWasGranted();
}

void World::mendAll() {
  for (auto& [id, t] : things_) t.noSave = t.noRestore = t.noQuiesce = false;
  for (GroupId id : std::set(paused_)) {
    paused_.erase(id);
    send(GroupPaused{id, false}, "resume " + digits(std::uint64_t(id)));
  }
  for (auto& [id, node] : nodes_) {
    if (std::exchange(node.drained, false)) send(NodeDrained{id, false}, "undrain " + text(id));
    if (node.link != Link::Up) rejoin(id);
  }
  while (joinLate()) continue;
  // What is saved leaves its device in the end.
  for (MemberId id : idsOf(things_, [](const Thing& t) { return t.alive && t.fact.unreleased; })) {
    Thing& t = things_.at(id);
    t.fact.unreleased = false;
    send(MemberSeen{t.job, t.node, t.fact}, "seen " + text(id) + " saved");
  }
  // A member that the driver gave up is killed by somebody.
  for (MemberId id : idsOf(things_, [](const Thing& t) {
         return t.alive && t.fact.residency == Residency::Faulted;
       })) {
    die(id);
  }
}

// Until nothing happens any more.
void World::settle() {
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    bool quiet = open_.empty();
    while (!open_.empty()) finish(0, fate(open_[0], 23), 0);
    buryTheDead();
    clearFaults();
    if (yieldAll()) quiet = false;
    if (passTime()) quiet = false;
    if (quiet && open_.empty()) return;
  }
  throw Broken("it never comes to rest");
}

void World::buryTheDead() {
  for (MemberId id : idsOf(things_, [](const Thing& t) { return !t.alive; })) {
    JobId job = things_.at(id).job;
    things_.erase(id);
    send(MemberCleared{id}, "cleared " + text(id));
    endIfEmpty(job);
  }
}

void World::clearFaults() {
  for (JobId id : idsOf(jobs_, [](const Job& j) { return j.faulted && !j.killed; })) {
    jobs_.at(id).faulted = false;
    send(FaultCleared{id}, "clear " + text(id));
  }
}

// Whether somebody had a turn to give back.
bool World::yieldAll() {
  const auto in = idsOf(people_, [](const Person& p) { return p.stand == Stand::In; });
  for (ParticipantId id : in) {
    auto it = people_.find(id);
    if (it == people_.end() || it->second.stand != Stand::In) continue;
    it->second.stand = Stand::Out;
    send(Yielded{id, it->second.epoch},
         "yield " + it->second.name + " epoch=" + ts::text(it->second.epoch));
  }
  return !in.empty();
}

// Whether there was a time to wait for.
bool World::passTime() {
  auto due = cluster_->nextWake();
  if (!due || !open_.empty()) return false;
  now_ = std::max(now_, *due);
  send(TimePassed{}, "pass");
  return true;
}

void World::askFor(JobId job) {
  const auto outside =
      idsOf(people_, [&](const Person& p) { return p.job == job && p.stand == Stand::Out; });
  for (ParticipantId id : outside) {
    if (!people_.count(id)) continue;
    Person& p = people_.at(id);
    p.request = RequestId(++requests_);
    p.stand = Stand::Waiting;
    asked_[p.request] = id;
    send(AcquireRequested{p.request, id}, "acquire " + p.name + why(p.job));
  }
}

// "no waiter is forgotten"
void World::noWaiterIsLeft(const char* complaint) const {
  for (const auto& [request, person] : asked_) {
    const Person& p = people_.at(person);
    if (!incomplete(p.job)) throw Broken(complaint + p.name + why(p.job));
  }
}

// "a job whose claim can be satisfied ... is granted in the end"
void World::everyJobWasGranted() const {
  for (const auto& [id, p] : people_) {
    const Job& j = jobs_.at(p.job);
    if (!j.wasGranted && !j.evicted && !j.killed && !incomplete(p.job))
      throw Broken(text(p.job) + " is never granted" + why(p.job));
  }
}

}  // namespace ts::test
