// What may happen in the world: people ask and yield, orders end well or badly, nodes and operators do
// what they do.
#include <algorithm>
#include <utility>

#include "core/describe.h"
#include "world.h"

namespace ts::test {
namespace {

constexpr int kMaxTroubles = 3;  // "up to three failures at a time"

std::string digits(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace

// The whom-th of those that fit.
template <typename Map, typename Pred>
auto World::pick(Map& map, unsigned whom, Pred pred) -> typename Map::mapped_type* {
  std::vector<typename Map::mapped_type*> all;
  for (auto& [id, value] : map) {
    if (pred(value)) all.push_back(&value);
  }
  return all.empty() ? nullptr : all[whom % all.size()];
}

void World::make(const Move& m) {
  now_ += std::chrono::milliseconds(1);
  auto due = cluster_->nextWake();
  if (due && *due <= now_) send(TimePassed{}, "pass");
  unsigned what = m.what % 100;
  if (duel_ && what >= 87 && m.how % 8) what = 50;
  if (what < 20) return acquire(m.whom, m.how % 12 == 0);
  if (what < 23) return cancel(m.whom);
  if (what < 38) return yield(m.whom, m.how);
  if (what < 76) return answer(m.whom, m.how);
  if (what < 78) return overdue(m.whom);
  if (what < 84) return pass(m.how);
  if (what < 89) return trouble(m.whom, m.how);
  if (what < 92) return nodes(m.whom, m.how);
  if (what < 94) return people(m.whom, m.how);
  if (what < 97) return things(m.whom, m.how);
  if (what < 99 || m.how % 6) return operators(m.whom, m.how);
  restart(m.how);
}

// --- turns -----------------------------------------------------------------------------------------

void World::acquire(unsigned whom, bool tryOnly) {
  Person* p = pick(people_, whom, [&](const Person& x) { return x.stand == Stand::Out && up(x.node); });
  if (!p) return;
  p->request = RequestId(++requests_);
  p->stand = Stand::Waiting;
  p->ticket = 0;
  asked_[p->request] = p->id;
  ParticipantId id = p->id;
  std::string line = "acquire " + p->name + (tryOnly ? " try" : "");
  send(AcquireRequested{p->request, id, tryOnly}, line);
  auto it = people_.find(id);
  if (it == people_.end() || it->second.stand != Stand::Waiting) return;
  it->second.ticket = cluster_->ticket(it->second.request).value_or(0);
  bool waits = it->second.ticket != 0;
  if (tryOnly && waits) throw Broken("a try-acquire waits");
}

void World::cancel(unsigned whom) {
  Person* p = pick(people_, whom, [&](const Person& x) {
    return x.stand == Stand::Waiting && up(x.node) && (whom / 8 % 2 == 0 || switching(x.job));
  });
  if (!p) return;
  bool last = std::none_of(people_.begin(), people_.end(), [&](const auto& e) {
    return e.second.job == p->job && e.second.id != p->id && e.second.stand == Stand::Waiting;
  });
  if (last && switching(p->job)) ++counts_[anySaved(p->job) ? "row last call ends after the first save"
                                                           : "row last call ends before the first save"];
  p->stand = Stand::Out;
  asked_.erase(p->request);
  promised_.erase(p->request);
  send(AcquireCancelled{p->request}, "cancel " + p->name);
}

void World::yield(unsigned whom, unsigned how) {
  if (how % 20 == 0) {  // stale, or without a slice
    Person* p = pick(people_, whom, [&](const Person& x) { return x.stand != Stand::In; });
    if (p) send(Yielded{p->id, {0, 1}}, "yield " + p->name + " epoch=0.1");
    return;
  }
  Person* p = pick(people_, whom, [&](const Person& x) { return x.stand == Stand::In && up(x.node); });
  if (!p) return;
  p->stand = Stand::Out;
  send(Yielded{p->id, p->epoch}, "yield " + p->name + " epoch=" + ts::text(p->epoch));
}

bool World::switching(JobId job) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const auto& r) { return r.first.second == job; });
}

// Whether something that the switch of `job` sends out has gone, or is going.
bool World::anySaved(JobId job) const {
  for (const auto& [key, room] : rooms_) {
    if (key.second != job) continue;
    for (MemberId id : room.outgoing) {
      auto t = things_.find(id);
      if (t != things_.end() && t->second.fact.residency == Residency::Saved) return true;
      for (const Open& o : open_) {
        if (o.verb == "save" && o.member == id) return true;
      }
    }
  }
  return false;
}

// --- orders ----------------------------------------------------------------------------------------

void World::answer(unsigned whom, unsigned how) {
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (up(open_[i].node) && (!open_[i].overdue || how % 8 == 0)) ready.push_back(i);
  }
  if (ready.empty()) return;
  std::size_t index = ready[whom % ready.size()];
  finish(index, fate(open_[index], how / 8), how / 64);
}

void World::finish(std::size_t index, Outcome::Code code, unsigned how) {
  Open order = open_[index];
  open_.erase(open_.begin() + std::ptrdiff_t(index));
  Outcome o = apply(order, code, how);
  countFailure(order, code, o);
  std::string line = std::string(code == Outcome::Code::Ok        ? "ok"
                                 : code == Outcome::Code::Refused ? "refuse"
                                 : code == Outcome::Code::Failed  ? "fail"
                                                                  : "gone");
  line += " " + order.verb + " " + text(order.node) + " " + text(order.job);
  if (order.member != MemberId{}) line += " " + text(order.member);
  if (o.cause != Cause::None) line += std::string(" cause=") + ts::text(o.cause);
  if (o.lasting) line += " lasting";
  for (const MemberFact& f : o.members) line += " " + text(f.member) + "=" + ts::text(f.residency);
  JobId job = order.job;
  send(OrderFinished{order.id, o}, line);
  if (order.verb == "grant" && code == Outcome::Code::Ok) touchDevices(job, order.node, how);
  if (order.verb == "kill" && code == Outcome::Code::Ok) killOn(job, order.node);
}

// In its slice a process touches the device for the first time.
void World::touchDevices(JobId job, NodeId node, unsigned how) {
  if (how % 4 == 0) return;
  for (auto& [id, t] : things_) {
    bool first = t.job == job && t.node == node && t.alive && t.fact.residency == Residency::Absent;
    if (!first || holds_[t.fact.devices[0]].job != job) continue;
    t.fact.residency = Residency::Resident;
    send(MemberSeen{job, node, t.fact}, "seen " + text(id) + " resident");
  }
}

// How an order ends: mostly well; what is broken fails; a target that is gone is gone.
Outcome::Code World::fate(const Open& order, unsigned how) const {
  using Code = Outcome::Code;
  auto t = things_.find(order.member);
  if (order.member != MemberId{} && (t == things_.end() || !t->second.alive)) return Code::Gone;
  if (order.verb == "save" && t->second.noSave) return Code::Failed;
  if (order.verb == "restore" && t->second.noRestore) return Code::Failed;
  if (order.verb == "quiesce") {
    for (const auto& [id, x] : things_) {
      bool stuck = x.noQuiesce && x.alive && x.job == order.job && x.node == order.node;
      if (stuck) return Code::Failed;
    }
  }
  if (draining_ || troubles() > kMaxTroubles) return Code::Ok;
  unsigned dice = how % 24;
  // The rare rows of the table: half of O is saved already, or I must go back where it came from.
  bool half = std::any_of(things_.begin(), things_.end(), [&](const auto& e) {
    return e.second.job == order.job && e.second.fact.residency == Residency::Saved;
  });
  bool undone = order.verb == "save" && rooms_.count({order.node, order.job}) > 0;
  if (undone) return dice < 16 ? Code::Failed : Code::Ok;
  if (order.verb == "save" && half) return dice < 16 ? Code::Failed : Code::Ok;
  if (order.verb == "prepare") return dice < 3 ? Code::Refused : dice == 3 ? Code::Failed : Code::Ok;
  if (order.verb == "restore") return dice < 5 ? Code::Refused : dice < 9 ? Code::Failed : Code::Ok;
  if (order.verb == "save") return dice < 2 ? Code::Failed : dice == 2 ? Code::Refused : Code::Ok;
  if (order.verb == "quiesce") return dice < 2 ? Code::Failed : Code::Ok;
  if (order.verb == "grant") return dice == 0 && how % 3 == 0 ? Code::Failed : Code::Ok;
  if (order.verb == "release") return dice == 0 ? Code::Failed : Code::Ok;
  if (order.verb == "kill") return dice == 0 ? Code::Failed : Code::Ok;
  return Code::Ok;
}

// Makes the effect true, and reads it back.
Outcome World::apply(const Open& order, Outcome::Code code, unsigned how) {
  Outcome o{.code = code};
  bool ok = code == Outcome::Code::Ok;
  if (order.verb == "prepare") {
    auto room = rooms_.find({order.node, order.job});
    bool current = room != rooms_.end() && room->second.prepare == order.id;
    if (ok && current) room->second.held = true;
    if (!ok && current) rooms_.erase(room);
    if (!ok) o.cause = how % 2 ? Cause::NoHostMemory : Cause::Stranger;
    return o;
  }
  if (const auto* a = std::get_if<Grant>(&order.action)) answered(*a, ok);
  bool one = order.member != MemberId{};
  for (auto& [id, t] : things_) {
    if (t.job != order.job || t.node != order.node || (one && id != order.member)) continue;
    if (!t.alive) continue;
    Residency& r = t.fact.residency;
    bool half = !ok && how % 3 == 0;  // a failed call may have done its work on some
    if (order.verb == "quiesce" && r == Residency::Resident && (ok || half)) r = Residency::Quiet;
    bool lets = order.verb == "release" || order.verb == "grant";
    if (lets && r == Residency::Quiet && ok) r = Residency::Resident;
    if (order.verb == "save" && ok) r = Residency::Saved;
    if (order.verb == "restore" && ok) r = Residency::Quiet;
    if (order.verb == "restore" && code == Outcome::Code::Failed && t.noRestore) {
      r = Residency::Faulted;  // a failed restore can be permanent
    }
    o.members.push_back(t.fact);
  }
  if (!ok) o.cause = order.verb == "restore" && code == Outcome::Code::Refused ? Cause::NoDeviceMemory
                                                                             : Cause::DriverError;
  o.lasting = code == Outcome::Code::Failed && how % 7 == 1 && order.verb != "release";
  return o;
}

// The node answers those that still wait when it obeys a grant.
void World::answered(const Grant& a, bool ok) {
  for (RequestId r : a.requests) {
    if (!promised_.count(r) || !ok) continue;
    promised_.erase(r);
    if (!asked_.count(r) || !people_.count(asked_.at(r))) continue;  // its caller is gone
    Person& p = people_.at(asked_.at(r));
    asked_.erase(r);
    p.stand = Stand::In;
    p.epoch = a.epoch;
  }
}

void World::countFailure(const Open& order, Outcome::Code code, const Outcome& o) {
  if (code == Outcome::Code::Ok) return;
  const std::string& v = order.verb;
  if (code == Outcome::Code::Gone) {
    ++counts_["row a target dies under a call"];
    return;
  }
  if (v == "prepare") ++counts_["row prepare refused"];
  if (v == "quiesce") ++counts_["row quiesce fails"];
  if (v == "release") {
    ++counts_["row release fails"];
    jobs_.at(order.job).odd = true;  // half of it runs until a later try
  }
  if (v == "kill") ++counts_["row kill fails"];
  if (v == "grant") ++counts_["row a node cannot complete a grant"];
  if (v == "restore") {
    bool room = o.cause == Cause::NoDeviceMemory;
    ++counts_[room ? "row restore lacks memory" : "row restore fails"];
  }
  if (v != "save") return;
  bool undone = rooms_.count({order.node, order.job}) > 0;  // booked for its own switch
  ++counts_[undone ? "row I cannot be saved again" : "row save fails"];
  auto t = things_.find(order.member);
  if (t != things_.end()) ++counts_["row save fails before the commit point"];
}

void World::overdue(unsigned whom) {
  std::vector<Open*> all;
  for (Open& o : open_) {
    bool counts = o.verb != "end-slice" && o.verb != "drop-booking" && o.verb != "discard";
    if (!o.overdue && counts && up(o.node)) all.push_back(&o);
  }
  if (all.empty() || troubles() >= kMaxTroubles) return;
  Open& o = *all[whom % all.size()];
  o.overdue = true;
  ++counts_["row overdue"];
  ++counts_["row overdue " + o.verb];
  std::string line = "late " + o.verb + " " + text(o.node) + " " + text(o.job);
  if (o.member != MemberId{}) line += " " + text(o.member);
  send(OrderOverdue{o.id}, line);
}

void World::pass(unsigned how) {
  auto due = cluster_->nextWake();
  if (how % 3 == 0 && due) {
    now_ = std::max(now_, *due);
  } else {
    now_ += std::chrono::milliseconds(how % 3 == 1 ? 200 : 1);
  }
  send(TimePassed{}, "pass");
}

// --- things that break -----------------------------------------------------------------------------

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

// Up again: joins, tells what is there, and has told all.
void World::rejoin(NodeId id) {
  Node& node = nodes_.at(id);
  std::string devices = " devices=" + digits(node.devices.size());
  bool dead = node.link == Link::Dead;
  if (!dead) send(TimePassed{}, "pass");
  node.link = Link::Suspect;  // nothing may be ordered before the report is complete
  send(NodeJoined{id, node.devices}, "joins " + text(id) + devices);
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
    send(JobDeclared{jobId, job.group, job.options, on},
         "job " + text(jobId) + " group=" + digits(std::uint64_t(job.group)) + " gang=" +
             digits(job.options.gang) + " priority=" + digits(std::uint64_t(job.options.priority)) +
             (job.options.onBroken == OnBroken::Keep ? " keep" : "") + " nodes=" + names);
  }
  for (auto& [personId, p] : people_) {
    if (p.node != id) continue;
    send(ParticipantJoined{p.id, p.job, p.node, p.process, p.devices}, "rejoin " + p.name + why(p.job));
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
      send(SliceReported{p.id, p.epoch}, "in-slice " + p.name + " epoch=" + ts::text(p.epoch));
    } else if (p.stand == Stand::Waiting) {
      send(AcquireRequested{p.request, p.id, false, p.ticket},
           "acquire " + p.name + " ticket=" + digits(p.ticket));
    }
  }
}

// --- people and things that come and go ------------------------------------------------------------

void World::people(unsigned whom, unsigned how) {
  if (how % 3 == 0) {
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
    t->fact.devices.insert(
        std::upper_bound(t->fact.devices.begin(), t->fact.devices.end(), more), more);
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

// --- operators and masters -------------------------------------------------------------------------

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
    bool lost = nodes_.at(p.node).link == Link::Dead || nodes_.at(p.node).lost.count(p.job);
    if (p.stand != Stand::In || lost) continue;
    for (const auto& [otherId, other] : people_) {
      bool gone = nodes_.at(other.node).link == Link::Dead || nodes_.at(other.node).lost.count(p.job);
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

// --- the end of a walk -----------------------------------------------------------------------------

void World::drain() {
  draining_ = true;
  for (auto& [id, t] : things_) t.noSave = t.noRestore = t.noQuiesce = false;
  for (GroupId id : std::set(paused_)) {
    paused_.erase(id);
    send(GroupPaused{id, false}, "resume " + digits(std::uint64_t(id)));
  }
  for (auto& [id, node] : nodes_) {
    if (std::exchange(node.drained, false)) send(NodeDrained{id, false}, "undrain " + text(id));
    if (node.link != Link::Up) rejoin(id);
  }
  // A member that the driver gave up is killed by somebody.
  std::vector<MemberId> faulted;
  for (auto& [id, t] : things_) {
    if (t.alive && t.fact.residency == Residency::Faulted) faulted.push_back(id);
  }
  for (MemberId id : faulted) die(id);
  auto settle = [&] {
    for (int round = 0; round < 400; ++round) {
      bool quiet = open_.empty();
      while (!open_.empty()) finish(0, fate(open_[0], 23), 0);
      for (MemberId id : [&] {
             std::vector<MemberId> dead;
             for (auto& [m, t] : things_) {
               if (!t.alive) dead.push_back(m);
             }
             return dead;
           }()) {
        JobId job = things_.at(id).job;
        things_.erase(id);
        send(MemberCleared{id}, "cleared " + text(id));
        endIfEmpty(job);
      }
      std::vector<JobId> sick;
      for (auto& [id, j] : jobs_) {
        if (j.faulted && !j.killed) sick.push_back(id);
      }
      for (JobId id : sick) {
        jobs_.at(id).faulted = false;
        send(FaultCleared{id}, "clear " + text(id));
      }
      std::vector<ParticipantId> in;
      for (auto& [id, p] : people_) {
        if (p.stand == Stand::In) in.push_back(id);
      }
      for (ParticipantId id : in) {
        auto it = people_.find(id);
        if (it == people_.end() || it->second.stand != Stand::In) continue;
        it->second.stand = Stand::Out;
        send(Yielded{id, it->second.epoch},
             "yield " + it->second.name + " epoch=" + ts::text(it->second.epoch));
      }
      if (auto due = cluster_->nextWake(); due && open_.empty()) {
        now_ = std::max(now_, *due);
        send(TimePassed{}, "pass");
        quiet = false;
      }
      if (quiet && open_.empty() && in.empty()) return;
    }
    throw Broken("it never comes to rest");
  };
  settle();
  // "no waiter is forgotten"
  for (const auto& [request, person] : asked_) {
    const Person& p = people_.at(person);
    if (!incomplete(p.job)) throw Broken("a waiter is forgotten: " + p.name + why(p.job));
  }
  // "a job whose claim can be satisfied ... is granted in the end"
  for (auto& [id, j] : jobs_) {
    j.wasGranted = false;
    j.odd = false;
  }
  std::vector<JobId> all;
  for (auto& [id, j] : jobs_) all.push_back(id);
  for (JobId job : all) {  // one after another: what waits for itself elsewhere is refused
    std::vector<ParticipantId> members;
    for (auto& [id, p] : people_) {
      if (p.job == job && p.stand == Stand::Out) members.push_back(id);
    }
    for (ParticipantId id : members) {
      if (!people_.count(id)) continue;
      Person& p = people_.at(id);
      p.request = RequestId(++requests_);
      p.stand = Stand::Waiting;
      asked_[p.request] = id;
      send(AcquireRequested{p.request, id}, "acquire " + p.name + why(p.job));
    }
    settle();
  }
  for (const auto& [request, person] : asked_) {
    const Person& p = people_.at(person);
    if (!incomplete(p.job)) throw Broken("a waiter is forgotten in the end: " + p.name + why(p.job));
  }
  for (auto& [id, p] : people_) {
    const Job& j = jobs_.at(p.job);
    if (!j.wasGranted && !j.evicted && !j.killed && !incomplete(p.job)) throw Broken(text(p.job) + " is never granted" + why(p.job));
  }
}

}  // namespace ts::test
