// What breaks and changes in the world: members, nodes, masters, operators.
#include <algorithm>
#include <utility>

#include "core/describe.h"
#include "pick.h"
#include "world.h"

namespace ts::test {
namespace {

std::string digits(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace

// --- things that break
// -----------------------------------------------------------------------------

int World::troubles() const {
  int n = 0;
  for (const auto& [id, node] : nodes_) n += node.link != Link::Up;
  for (const auto& [id, t] : things_) n += t.alive && (t.noSave || t.noRestore || t.noQuiesce);
  for (const Open& o : open_) n += o.overdue;
  return n;
}

// Something breaks until it is mended, or the oldest trouble is mended.
void World::trouble(unsigned whom, unsigned how) {
  bool mend = how % 3 == 0 || troubles() >= kMaxTroubles;
  Thing* t = pick(things_, whom, [&](const Thing& x) {
    bool sick = x.noSave || x.noRestore || x.noQuiesce;
    return x.alive && sick == mend;
  });
  if (!t) return;
  if (mend) {
    t->noSave = t->noRestore = t->noQuiesce = false;
    return;
  }
  unsigned kind = how / 3 % 4;
  t->noSave = kind == 0 || kind == 3;
  t->noRestore = kind == 1;
  t->noQuiesce = kind == 2;
}

void World::nodes(unsigned whom, unsigned how) {
  NodeId id{whom % 3};
  Node& node = nodes_.at(id);
  if (node.link == Link::Up) {
    if (how % 4 == 0) {  // a daemon restarts: the link is lost and found, everything lives on
      ++counts_["row holder's connection lost"];
      if (how / 4 % 2 == 0) forgetCalls(id, how / 8);
      return rejoin(id);
    }
    if (troubles() >= kMaxTroubles) return;
    node.link = Link::Suspect;
    ++counts_["row node suspect"];
    return send(NodeSuspected{id}, "suspect " + text(id));
  }
  if (node.link == Link::Suspect && how % 2) {
    node.link = Link::Dead;
    ++counts_["row node dead"];
    std::erase_if(open_, [&](const Open& o) { return o.node == id; });
    std::erase_if(rooms_, [&](const auto& r) { return r.first.first == id; });
    for (auto& [device, hold] : holds_) {
      if (device.node == id) hold = {};
    }
    for (auto& [thingId, t] : things_) {
      if (t.node == id) node.lost.insert(t.job);
    }
    for (auto& [personId, p] : people_) {
      if (p.node == id) node.lost.insert(p.job);
    }
    for (JobId job : node.lost) jobs_.at(job).odd = true;
    return send(NodeDied{id}, "dead " + text(id));
  }
  if (node.link == Link::Dead) ++counts_["row node returns from the dead"];
  rejoin(id);
}

// A daemon that ends before it has written down a call, or its place, knows nothing of it.
void World::forgetCalls(NodeId id, unsigned how) {
  for (auto& [personId, p] : people_) {
    if (p.node != id || p.stand != Stand::Waiting || how++ % 2) continue;
    p.stand = Stand::Out;
    asked_.erase(p.request);
    promised_.erase(p.request);
    forgotten_.insert(p.request);
    ++counts_["row a call is forgotten"];
  }
}

// Up again: joins, tells what is there, and has told all.
void World::rejoin(NodeId id) {
  Node& node = nodes_.at(id);
  std::string devices = " devices=" + digits(node.devices.size());
  bool dead = node.link == Link::Dead;
  if (!dead) send(TimePassed{}, "pass");
  node.link = Link::Suspect;  // nothing may be ordered before the report is complete
  for (auto& [where, room] : rooms_) room.forgotten |= where.first == id;  // was only in its memory
  send(NodeJoined{id, node.devices}, "joins " + text(id) + devices);
  if (!dead) undoJoins(id);
  report(id);
  node.link = Link::Up;
  send(NodeReported{id}, "reports " + text(id));
  if (!dead && node.lost.empty()) return;
  // What came back from the dead is on its way out: its people are nobody to the core.
  std::vector<ParticipantId> lost;
  for (auto& [personId, p] : people_) {
    if (p.node == id && node.lost.count(p.job)) lost.push_back(personId);
  }
  for (ParticipantId person : lost) {
    promised_.erase(people_.at(person).request);
    asked_.erase(people_.at(person).request);
    people_.erase(person);
  }
}

// What the node has recorded as granted, by job.
std::map<JobId, std::pair<Epoch, Devices>> World::grantsAt(NodeId id) const {
  std::map<JobId, std::pair<Epoch, Devices>> all;
  for (const auto& [device, hold] : holds_) {
    if (device.node != id || !jobs_.count(hold.job)) continue;
    all[hold.job].first = hold.epoch;
    all[hold.job].second.push_back(device);
  }
  return all;
}

void World::report(NodeId id) {
  // What no participant is in any more was never more than a record of the node.
  for (auto& [device, hold] : holds_) {
    bool over = std::none_of(people_.begin(), people_.end(), [&](const auto& e) {
      return e.second.job == hold.job && e.second.stand == Stand::In;
    });
    if (device.node == id && hold.recovered && over) hold = {};
  }
  for (auto& [jobId, job] : jobs_) {
    std::vector<NodeId> on;
    std::string names;
    bool here = false;
    auto add = [&](NodeId n) {
      here |= n == id;
      if (std::find(on.begin(), on.end(), n) == on.end()) on.push_back(n);
    };
    for (auto& [personId, p] : people_) {
      if (p.job == jobId) add(p.node);
    }
    for (auto& [thingId, t] : things_) {
      if (t.job == jobId) add(t.node);
    }
    if (!here) continue;
    for (NodeId n : on) names += (names.empty() ? "" : ",") + text(n);
    send(JobDeclared{jobId, job.group, job.options, on, job.gathered},
         "job " + text(jobId) + " group=" + digits(std::uint64_t(job.group)) + " gang=" +
             digits(job.options.gang) + " priority=" + digits(std::uint64_t(job.options.priority)) +
             (job.options.onBroken == OnBroken::Keep ? " keep" : "") +
             (job.gathered ? " gathered" : "") + " nodes=" + names);
  }
  for (const auto& [job, grant] : grantsAt(id)) {
    std::string where = text(id) + ":";
    for (const Device& d : grant.second)
      where += (where.back() == ':' ? "" : ",") + digits(d.index);
    found_.insert({job, grant.first});
    send(GrantReported{job, id, grant.first, grant.second},
         "granted " + text(job) + " " + where + " epoch=" + ts::text(grant.first));
  }
  for (auto& [personId, p] : people_) {
    if (p.node != id) continue;
    send(ParticipantJoined{p.id, p.job, p.node, p.process, p.devices},
         "rejoin " + p.name + why(p.job));
  }
  for (auto& [thingId, t] : things_) {
    if (t.node != id) continue;
    send(MemberSeen{t.job, t.node, t.fact},
         "seen " + text(thingId) + " " + ts::text(t.fact.residency));
    if (!t.alive) send(MemberDied{thingId}, "died " + text(thingId));
  }
  std::vector<Person> all;
  for (auto& [personId, p] : people_) {
    if (p.node == id) all.push_back(p);
  }
  for (const Person& p : all) {
    if (p.stand == Stand::In) {
      found_.insert({p.job, p.epoch});
      send(SliceReported{p.id, p.epoch}, "in-slice " + p.name + " epoch=" + ts::text(p.epoch));
    } else if (p.stand == Stand::Waiting) {
      send(AcquireRequested{p.request, p.id, false, p.ticket},
           "acquire " + p.name + " ticket=" + digits(p.ticket));
    }
  }
}

// --- people and things that come and go
// ------------------------------------------------------------

void World::people(unsigned whom, unsigned how) {
  if (how % 3 == 0) {
    if (whom % 2 == 0) joinLate(whom % 8 == 0);
    addJob(GroupId{1 + whom % 4 / 3});
    return;
  }
  Person* p = pick(people_, whom, [&](const Person& x) { return up(x.node); });
  if (p) leave(p->id, how % 3 == 1);
}

void World::leave(ParticipantId id, bool died) {
  Person p = people_.at(id);
  bool promised = promised_.count(p.request) > 0;
  people_.erase(id);
  if (promised) {  // its node will find nobody to answer
    promised_.erase(p.request);
    asked_.erase(p.request);
  }
  send(ParticipantLeft{id, died}, "left " + p.name + (died ? " died" : ""));
  asked_.erase(p.request);
  endIfEmpty(p.job);
}

void World::things(unsigned whom, unsigned how) {
  unsigned kind = how % 8;
  if (how / 8 % 2 == 0) releaseLate(whom);
  if (kind < 3) {  // dead ones are measured clear
    Thing* t = pick(things_, whom, [&](const Thing& x) { return !x.alive && up(x.node); });
    if (!t) return;
    JobId job = t->job;
    MemberId id = t->fact.member;
    things_.erase(id);
    send(MemberCleared{id}, "cleared " + text(id));
    return endIfEmpty(job);
  }
  if (kind == 3) {  // one in two of a switch, if there is one
    Thing* victim = pick(things_, whom, [&](const Thing& x) {
      return x.alive && up(x.node) && (how / 8 % 2 == 0 || inRoom(x.fact.member));
    });
    return victim ? die(victim->fact.member) : void();
  }
  Thing* t = pick(things_, whom, [&](const Thing& x) { return x.alive && up(x.node); });
  if (!t) return;
  bool moving = std::any_of(open_.begin(), open_.end(), [&](const Open& o) {
    return o.job == t->job && o.node == t->node && o.verb != "end-slice";
  });
  if (moving) return;
  Residency& r = t->fact.residency;
  if (kind <= 5 && r == Residency::Absent) {
    // Device memory is first touched in a slice; or outside one, which is reported.
    bool held = holds_[t->fact.devices[0]].job == t->job;
    if (!held && how % 16 < 12) return;
    r = Residency::Resident;
    if (!held) ++counts_["row a device is used outside a slice"];
    if (!held) jobs_.at(t->job).odd = true;
  } else if (kind == 6 && r == Residency::Resident && how % 16 < 8) {
    // ... on a device outside the claim
    Device more{t->node, jobs_.at(t->job).group == GroupId(2) ? 2U : how / 16 % 2};
    if (std::count(t->fact.devices.begin(), t->fact.devices.end(), more)) return;
    t->fact.devices.insert(std::upper_bound(t->fact.devices.begin(), t->fact.devices.end(), more),
                           more);
    ++counts_["row a device is used outside a slice"];
  } else if (kind == 7 && how % 32 == 7 && r == Residency::Quiet) {
    r = Residency::Faulted;
    jobs_.at(t->job).odd = true;
  } else {
    return;
  }
  std::string line = "seen " + text(t->fact.member) + " " + ts::text(r) + " " + text(t->node) + ":";
  for (const Device& d : t->fact.devices) line += (line.back() == ':' ? "" : ",") + digits(d.index);
  send(MemberSeen{t->job, t->node, t->fact}, line);
}

void World::releaseLate(unsigned whom) {
  Thing* t = pick(things_, whom,
                  [&](const Thing& x) { return x.alive && x.fact.unreleased && up(x.node); });
  if (!t) return;
  for (const Open& o : open_) {
    if (o.member == t->fact.member) return;  // its end will tell
  }
  t->fact.unreleased = false;
  ++counts_["row released late"];
  send(MemberSeen{t->job, t->node, t->fact}, "seen " + text(t->fact.member) + " saved");
}

bool World::inRoom(MemberId id) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const auto& r) {
    const Room& room = r.second;
    return std::count(room.outgoing.begin(), room.outgoing.end(), id) > 0 ||
           std::count(room.incoming.begin(), room.incoming.end(), id) > 0;
  });
}

void World::die(MemberId id) {
  Thing& t = things_.at(id);
  bool last = std::none_of(things_.begin(), things_.end(), [&](const auto& e) {
    return e.second.job == t.job && e.second.alive && e.first != id;
  });
  ++counts_["row a member dies"];
  if (last) ++counts_["row the last member dies"];
  if (inRoom(id)) ++counts_["row a member dies in mid-switch"];
  t.alive = false;
  send(MemberDied{id}, "died " + text(id));
}

void World::killOn(JobId job, NodeId node) {
  std::vector<MemberId> members;
  for (auto& [id, t] : things_) {
    if (t.job == job && t.node == node && t.alive) members.push_back(id);
  }
  for (MemberId id : members) die(id);
  std::vector<ParticipantId> gone;
  for (auto& [id, p] : people_) {
    if (p.job == job && p.node == node) gone.push_back(id);
  }
  for (ParticipantId id : gone) {
    if (people_.count(id)) leave(id, true);
  }
  endIfEmpty(job);
}

void World::endIfEmpty(JobId job) {
  if (!jobs_.count(job)) return;
  for (const auto& [id, p] : people_) {
    if (p.job == job) return;
  }
  for (const auto& [id, t] : things_) {
    if (t.job == job) return;
  }
  std::erase_if(open_, [&](const Open& o) { return o.job == job && o.verb != "end-slice"; });
  send(JobEnded{job}, "ended " + text(job));
  std::erase_if(rooms_, [&](const auto& r) { return r.first.second == job; });
  for (auto& [id, node] : nodes_) node.lost.erase(job);
  jobs_.erase(job);
}

// --- operators and masters
// -------------------------------------------------------------------------

void World::operators(unsigned whom, unsigned how) {
  switch (how % 5) {
    case 0: {
      GroupId id{1 + whom % 2};
      bool on = !paused_.count(id);
      on ? void(paused_.insert(id)) : void(paused_.erase(id));
      return send(GroupPaused{id, on}, (on ? "pause " : "resume ") + digits(std::uint64_t(id)));
    }
    case 1: {
      NodeId id{whom % 3};
      bool on = !nodes_.at(id).drained;
      nodes_.at(id).drained = on;
      return send(NodeDrained{id, on}, (on ? "drain " : "undrain ") + text(id));
    }
    case 2: {
      auto it = jobs_.begin();
      std::advance(it, whom % std::max<std::size_t>(jobs_.size(), 1));
      if (it == jobs_.end() || how % 3) return;
      bool kill = how % 2;
      it->second.evicted = true;
      // The slice is void at once; whoever is in it finds out at its next call.
      for (auto& [id, p] : people_) {
        if (p.job == it->first && p.stand == Stand::In) p.stand = Stand::Out;
      }
      return send(JobEvicted{it->first, kill}, "evict " + text(it->first) + (kill ? " kill" : ""));
    }
    default: {
      Job* job = pick(jobs_, whom, [](const Job& j) { return j.faulted && !j.killed; });
      if (!job) return;
      job->faulted = false;
      job->odd = true;
      for (auto& [id, j] : jobs_) {
        if (&j == job) return send(FaultCleared{id}, "clear " + text(id));
      }
    }
  }
}

// The master dies: orders on their way end as they will, and a new one hears from every node anew.
void World::restart(unsigned how) {
  ++counts_["event master-restarts"];
  std::vector<Open> open;
  std::swap(open, open_);
  for (const Open& o : open) {
    bool reached = up(o.node) && (how + std::uint64_t(o.id)) % 3 != 0;
    if (reached) apply(o, fate(o, how + unsigned(std::uint64_t(o.id))), how);
  }
  rooms_.clear();
  promised_.clear();
  restarted_ = true;
  config_.generation = ++generation_;
  config_.recovering = true;
  cluster_ = std::make_unique<Cluster>(config_);
  story_.push_back("cluster recovering generation=" + digits(generation_));
  for (auto& [id, config] : std::map(groups_)) addGroup(id, config);
  paused_.clear();
  // A grant is what participants are in: what no participant is in is void.
  for (auto& [device, hold] : holds_) hold = {};
  for (auto& [id, p] : people_) {
    p.unanswered = false;  // what is reported is no new join
    bool lost = nodes_.at(p.node).link == Link::Dead || nodes_.at(p.node).lost.count(p.job);
    if (p.stand != Stand::In || lost) continue;
    for (const auto& [otherId, other] : people_) {
      bool gone =
          nodes_.at(other.node).link == Link::Dead || nodes_.at(other.node).lost.count(p.job);
      if (other.job != p.job || gone) continue;
      for (const Device& d : other.devices) {
        if (holds_[d].epoch < p.epoch) holds_[d] = {p.job, p.epoch, true};
      }
    }
  }
  for (auto& [id, job] : jobs_) {
    job.faulted = job.evicted = job.killed = false;
    job.odd = true;
  }
  std::vector<NodeId> order;
  for (auto& [id, node] : nodes_) {
    node.drained = false;
    node.lost.clear();  // the new master has heard of no verdict
    if (node.link == Link::Dead) node.link = Link::Suspect;
    order.push_back(id);
  }
  std::rotate(order.begin(), order.begin() + how % 3, order.end());
  for (NodeId id : order) {
    Node& node = nodes_.at(id);
    if (node.link == Link::Up) rejoin(id);
  }
}

}  // namespace ts::test
