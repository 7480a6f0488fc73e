// The promises of the design, asserted at every action and after every step.
#include <algorithm>

#include "core/describe.h"
#include "world.h"

namespace ts::test {
namespace {

void must(bool kept, const std::string& promise) {
  if (!kept) throw Broken(promise);
}

}  // namespace

bool World::runs(const Thing& t) const {
  return t.alive && t.fact.residency == Residency::Resident &&
         nodes_.at(t.node).link != Link::Dead && !nodes_.at(t.node).lost.count(t.job);
}

bool World::onDevice(const Thing& t) const {
  return t.fact.residency != Residency::Absent && t.fact.residency != Residency::Saved &&
         nodes_.at(t.node).link != Link::Dead;
}

// "no state moves while its job holds"
void World::notHolding(JobId job, const char* verb) const {
  for (const auto& [device, hold] : holds_) {
    must(hold.job != job || stale(device),
         std::string(verb) + " of " + text(job) + " while it holds a device");
  }
}

// "One operation per member": nothing that moves, stops or lets go meets another such order.
void World::onlyOrder(NodeId node, JobId job, MemberId member, const char* verb) const {
  must(up(node), std::string(verb) + " ordered at " + text(node) + ", which cannot be reached");
  for (const Open& o : open_) {
    bool locks = o.verb == "quiesce" || o.verb == "release" || o.verb == "grant";
    bool moves = o.verb == "save" || o.verb == "restore";
    bool meets = locks || (moves && (member == MemberId{} || o.member == member));
    bool same = o.job == job && o.node == node && meets;
    must(!same, std::string(verb) + " of " + text(job) + " at " + text(node) + " meets " + o.verb);
  }
}

void World::check(const Prepare& a) {
  must(up(a.node), "prepare ordered at " + text(a.node) + ", which cannot be reached");
  must(!rooms_.count({a.node, a.job}), "a second booking for " + text(a.job));
}

void World::check(const DropBooking& a) {
  // In one step a booking may be dropped before the core reads that the node has refused it.
  bool crossed = refused_.count({a.node, a.job}) > 0;
  must(crossed || rooms_.count({a.node, a.job}) > 0,
       "a booking dropped that " + text(a.job) + " has not");
}

void World::check(const Quiesce& a) {
  if (!nodes_.at(a.node).lost.count(a.job)) notHolding(a.job, "quiesce");
  onlyOrder(a.node, a.job, {}, "quiesce");
}

void World::check(const Release& a) {
  onlyOrder(a.node, a.job, {}, "release");
  // "a job is whole: all of it runs, or none"
  for (const auto& [id, t] : things_) {
    bool away = t.job == a.job && t.alive && t.fact.residency == Residency::Saved;
    bool lost = nodes_.at(t.node).link == Link::Dead || nodes_.at(t.node).lost.count(t.job);
    must(!away || lost, "release of " + text(a.job) + " while member " + text(id) + " is saved");
  }
}

// "no save before barrier 1"
void World::check(const Save& a) {
  notHolding(a.job, "save");
  onlyOrder(a.node, a.job, a.member, "save");
  for (const auto& [id, t] : things_) {
    if (t.job != a.job) continue;
    must(!runs(t), "save of " + text(a.job) + " while its member " + text(id) + " runs");
  }
  for (const Open& o : open_) {
    bool locks = o.verb == "quiesce" || o.verb == "release" || o.verb == "grant";
    bool lost = nodes_.at(o.node).lost.count(o.job) > 0;
    must(o.job != a.job || !locks || lost, "save of " + text(a.job) + " beside an open " + o.verb);
  }
  bool booked = false, remembered = false;
  for (const auto& [where, room] : rooms_) {
    if (where.first != a.node) continue;
    if (std::count(room.outgoing.begin(), room.outgoing.end(), a.member) == 0) continue;
    booked = true;
    remembered |= !room.forgotten;
  }
  must(!booked || remembered,
       "save of member " + text(a.member) + " into room that its node may have forgotten");
  auto t = things_.find(a.member);
  must(t != things_.end() && t->second.fact.residency == Residency::Quiet,
       "save of member " + text(a.member) + ", which is not quiet");
}

void World::check(const Restore& a) {
  notHolding(a.job, "restore");
  onlyOrder(a.node, a.job, a.member, "restore");
  bool asked = std::any_of(people_.begin(), people_.end(), [&](const auto& e) {
    return e.second.job == a.job && e.second.stand == Stand::Waiting;
  });
  if (!asked) ++counts_["row a saved job is brought back unasked"];
  const Thing& t = things_.at(a.member);
  must(t.fact.residency == Residency::Saved,
       "restore of " + text(a.member) + ", which is not saved");
  for (const auto& [id, other] : things_) {
    if (other.job == a.job || other.node != t.node || !onDevice(other)) continue;
    for (const Device& d : other.fact.devices) {
      bool same =
          std::find(t.fact.devices.begin(), t.fact.devices.end(), d) != t.fact.devices.end();
      must(!same, "restore of " + text(a.job) + " beside member " + text(id));
    }
  }
  for (const Device& d : t.fact.devices) {
    auto hold = holds_.find(d);
    must(hold == holds_.end() || hold->second.job == JobId{} || stale(d),
         "restore of " + text(a.job) + " onto a device that is granted");
  }
}

// "no two conflicting jobs are granted", "no grant before barrier 2", "epochs only grow"
void World::check(const Grant& a) {
  bool same = a.epoch == jobs_.at(a.job).epoch;
  same |= found_.count({a.job, a.epoch}) > 0;
  for (const auto& [id, p] : people_) {
    same |= p.job == a.job && p.stand == Stand::In && p.epoch == a.epoch;
  }
  must(same || a.epoch > last_, "an epoch that does not grow: " + ts::text(a.epoch));
  must(up(a.node), "grant ordered at " + text(a.node) + ", which cannot be reached");
  must(same || !nodes_.at(a.node).drained, "grant at " + text(a.node) + ", which is drained");
  must(same || !paused_.count(jobs_.at(a.job).group), "grant in a paused group");
  must(same || jobs_.at(a.job).gathered || jobs_.at(a.job).options.gang == 0,
       "grant to a part of the gang of " + text(a.job));
  for (RequestId r : a.requests) {
    must(asked_.count(r) && !promised_.count(r), "a request answered twice");
  }
  for (const Device& d : a.devices) {
    Hold& hold = holds_[d];
    if (stale(d)) hold = {};
    must(hold.job == JobId{} || hold.job == a.job,
         "grant to " + text(a.job) + " while " + text(hold.job) + " holds its device");
    must(hold.job == JobId{} || hold.epoch == a.epoch, "a second slice of " + text(a.job));
    for (const auto& [id, t] : things_) {
      bool there =
          std::find(t.fact.devices.begin(), t.fact.devices.end(), d) != t.fact.devices.end();
      if (same || !there) continue;
      if (t.job == a.job) {
        bool away = t.alive && t.fact.residency == Residency::Saved;
        must(!away, "grant to " + text(a.job) + " while its member " + text(id) + " is saved");
      } else {
        must(!onDevice(t), "grant to " + text(a.job) + " while member " + text(id) + " is there");
        must(!t.fact.unreleased || nodes_.at(t.node).link == Link::Dead,
             "grant to " + text(a.job) + " while the bytes of " + text(id) + " are still there");
      }
    }
  }
  for (const Open& o : open_) {
    bool moves =
        o.job == a.job && (o.verb == "save" || o.verb == "restore") && things_.count(o.member);
    must(!moves, "grant to " + text(a.job) + " while it is moved");
  }
}

// Whether the switch of `incoming` has booked room for something of `job`.
bool World::sends(JobId incoming, JobId job) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const auto& r) {
    const auto& out = r.second.outgoing;
    return r.first.second == incoming && std::any_of(out.begin(), out.end(), [&](MemberId id) {
             return things_.count(id) && things_.at(id).job == job;
           });
  });
}

// Why the core says that the job waits.
std::string World::why(JobId job) const {
  auto v = cluster_->view(job);
  if (!v) return ": unknown";
  std::string all = std::string(": ") + ts::text(v->phase) + ", " + ts::text(v->cause) + ", " +
                    ts::text(v->fault) + ", " + v->detail + ", waits for";
  for (JobId other : v->waitsFor) all += " " + text(other);
  return all;
}

// Nobody of it is left there, or in it, and the new master never heard of the slice.
bool World::stale(Device device) const {
  auto hold = holds_.find(device);
  if (hold == holds_.end() || !hold->second.recovered) return false;
  return !claims(hold->second.job, device) || !anybodyIn(hold->second);
}

bool World::anybodyIn(const Hold& hold) const {
  return std::any_of(people_.begin(), people_.end(), [&](const auto& e) {
    const Node& node = nodes_.at(e.second.node);
    bool lost = node.link == Link::Dead || node.lost.count(hold.job);
    bool in = e.second.stand == Stand::In && e.second.epoch == hold.epoch;
    return e.second.job == hold.job && in && !lost;
  });
}

// Its gang is not there as a whole, and never was as far as one master has seen.
bool World::incomplete(JobId job) const {
  auto count = std::count_if(people_.begin(), people_.end(),
                             [&](const auto& e) { return e.second.job == job; });
  return !jobs_.at(job).gathered && std::uint32_t(count) < jobs_.at(job).options.gang;
}

bool World::claims(JobId job, Device device) const {
  return std::any_of(people_.begin(), people_.end(), [&](const auto& e) {
    const Devices& all = e.second.devices;
    return e.second.job == job && std::find(all.begin(), all.end(), device) != all.end();
  });
}

void World::check(const EndSlice&) {}
void World::check(const Discard& a) {
  auto t = things_.find(a.member);
  must(t == things_.end() || !t->second.alive, "discard of the living " + text(a.member));
}
void World::check(const Kill& a) {
  must(up(a.node), "kill ordered at " + text(a.node) + ", which cannot be reached");
  for (const Open& o : open_) {
    must(o.verb != "kill" || o.job != a.job || o.node != a.node, "two kills of " + text(a.job));
  }
}

// "every request is answered exactly once"
void World::check(const Refuse& a) {
  must(asked_.count(a.request) > 0 || forgotten_.erase(a.request) > 0,
       std::string("an answer nobody asked for: ") + ts::text(a.cause));
  ++counts_[std::string("refuse ") + ts::text(a.cause)];
  story_.push_back("# " + describe(a));
}

void World::check(const AskToYield& a) {
  bool holds = std::any_of(holds_.begin(), holds_.end(), [&](const auto& h) {
    return h.second.job == a.job && h.second.epoch == a.epoch;
  });
  for (const auto& [id, p] : people_) {  // in a slice that a new master found
    holds |= p.job == a.job && p.stand == Stand::In && p.epoch == a.epoch;
  }
  must(holds, text(a.job) + " is asked to yield and holds nothing");
  ++counts_["ask-to-yield"];
}

void World::check(const Notice& a) {
  ++counts_[std::string("notice ") + ts::text(a.kind)];
  if (a.kind == Notice::Kind::GangGathered) {
    must(!incomplete(a.job), "a part of the gang of " + text(a.job) + " is called all of it");
    jobs_.at(a.job).gathered = true;
  }
  if (a.kind == Notice::Kind::JobFaulted) {
    jobs_.at(a.job).faulted = true;
    ++counts_[std::string("row ") + "faulted(" + ts::text(a.fault) + ")"];
  }
}

// "a job is whole (all of it runs, or none) whenever nothing is in flight"
void World::checkStep() const {
  for (const auto& [id, job] : jobs_) {
    if (!job.odd && job.stuck.empty() && !job.faulted && !job.killed) checkWhole(id);
  }
}

void World::checkWhole(JobId job) const {
  int running = 0, stopped = 0;
  for (const auto& [id, t] : things_) {
    if (t.job != job || !t.alive || nodes_.at(t.node).lost.count(job)) continue;
    if (!up(t.node)) return;  // nobody can order anything there
    running += t.fact.residency == Residency::Resident;
    stopped += t.fact.residency == Residency::Quiet || t.fact.residency == Residency::Saved;
  }
  if (running == 0 || stopped == 0) return;
  bool flying = std::any_of(open_.begin(), open_.end(), [&](const Open& o) {
    // The switch that it is part of is on its way.
    if (o.verb == "prepare") return o.job == job || sends(o.job, job);
    return o.job == job && o.verb != "end-slice" && o.verb != "drop-booking";
  });
  must(flying, text(job) + " is half running and half not, and nothing is on its way" + why(job));
}

}  // namespace ts::test
