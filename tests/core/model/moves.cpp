// What may happen in the world: people ask and yield, orders end well or badly.
#include <algorithm>
#include <utility>

#include "core/describe.h"
#include "pick.h"
#include "world.h"

namespace ts::test {

void World::make(const Move& m) {
  now_ += std::chrono::milliseconds(1);
  auto due = cluster_->nextWake();
  if (due && *due <= now_) send(TimePassed{}, "pass");
  unsigned what = m.what % 100;
  if (duel_ && what >= 87 && m.how % 8) what = 50;
  bool joins = what >= 23 && what < 76;  // yields and answers may come in one step
  if (!joins) hear();
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

// --- turns
// -----------------------------------------------------------------------------------------

void World::acquire(unsigned whom, bool tryOnly) {
  Person* p =
      pick(people_, whom, [&](const Person& x) { return x.stand == Stand::Out && up(x.node); });
  if (!p) return;
  p->request = RequestId(++requests_);
  p->stand = Stand::Waiting;
  p->unanswered = false;
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
  if (last && switching(p->job))
    ++counts_[anySaved(p->job) ? "row last call ends after the first save"
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
  Person* p =
      pick(people_, whom, [&](const Person& x) { return x.stand == Stand::In && up(x.node); });
  if (!p) return;
  p->stand = Stand::Out;
  send(Yielded{p->id, p->epoch}, "yield " + p->name + " epoch=" + ts::text(p->epoch),
       how / 7 % 3 == 1);
}

bool World::switching(JobId job) const {
  return std::any_of(rooms_.begin(), rooms_.end(),
                     [&](const auto& r) { return r.first.second == job; });
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

// --- orders
// ----------------------------------------------------------------------------------------

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
  noteStuck(order, o);
  if (order.verb == "prepare" && !o.ok()) refused_.insert({order.node, order.job});
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
  send(OrderFinished{order.id, o}, line, how / 7 % 3 == 1);
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
  if (undone) return dice < 20 ? Code::Failed : Code::Ok;
  if (order.verb == "save" && half) return dice < 16 ? Code::Failed : Code::Ok;
  if (order.verb == "prepare")
    return dice < 3 ? Code::Refused : dice == 3 ? Code::Failed : Code::Ok;
  if (order.verb == "restore") return dice < 5 ? Code::Refused : dice < 9 ? Code::Failed : Code::Ok;
  if (order.verb == "save") return dice < 2 ? Code::Failed : dice == 2 ? Code::Refused : Code::Ok;
  if (order.verb == "quiesce") return dice < 2 ? Code::Failed : Code::Ok;
  if (order.verb == "grant" && how % 3 == 0 && dice < 2) return dice ? Code::Refused : Code::Failed;
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
  bool one = order.member != MemberId{}, unreleased = false;
  for (auto& [id, t] : things_) {
    if (t.job != order.job || t.node != order.node || (one && id != order.member)) continue;
    if (!t.alive) continue;
    Residency& r = t.fact.residency;
    bool half = !ok && how % 3 == 0;  // a failed call may have done its work on some
    if (order.verb == "quiesce" && r == Residency::Resident && (ok || half)) r = Residency::Quiet;
    bool lets = order.verb == "release" || order.verb == "grant";
    if (lets && r == Residency::Quiet && ok) r = Residency::Resident;
    if (order.verb == "save" && (ok || half)) r = Residency::Saved;
    if (order.verb == "restore" && ok) r = Residency::Quiet;
    if (one) t.fact.unreleased = order.verb == "save" && !ok && half;
    if (order.verb == "restore" && code == Outcome::Code::Failed && t.noRestore) {
      r = Residency::Faulted;  // a failed restore can be permanent
    }
    unreleased |= t.fact.unreleased;
    o.members.push_back(t.fact);
  }
  bool refused = code == Outcome::Code::Refused;
  if (!ok) o.cause = unreleased ? Cause::NotReleased : Cause::DriverError;
  if (refused && order.verb == "restore") o.cause = Cause::NoDeviceMemory;
  // A call of an earlier master runs there; its node answered with an exception; or the slice is
  // not to be had at all.
  if (refused && order.verb == "grant") {
    o.cause = how % 4 > 1 ? Cause::Busy : how % 4 == 1 ? Cause::NodeSuspect : Cause::Stale;
  }
  o.lasting = code == Outcome::Code::Failed && how % 7 == 1 && order.verb != "release";
  return o;
}

// The node answers those that still wait when it obeys a grant.
void World::answered(const Grant& a, bool ok) {
  for (RequestId r : a.requests) {
    if (promised_.erase(r) == 0 || !ok) continue;
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
  if (v == "release") ++counts_["row release fails"];
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
  if (o.cause == Cause::NotReleased) ++counts_["row saved and not released"];
}

// "completed on the others": what is stopped there waits for a later try.
void World::noteStuck(const Open& order, const Outcome& o) {
  if (order.verb != "grant" && order.verb != "release") return;
  auto& stuck = jobs_.at(order.job).stuck;
  bool stopped = std::any_of(o.members.begin(), o.members.end(),
                             [](const MemberFact& f) { return f.residency == Residency::Quiet; });
  !o.ok() && stopped ? void(stuck.insert(order.node)) : void(stuck.erase(order.node));
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

}  // namespace ts::test
