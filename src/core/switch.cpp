// One switch: prepare, quiesce, barrier 1, save, commit point, restore, barrier 2, grant.
#include <algorithm>
#include <map>

#include "group.h"
#include "roster.h"

namespace ts {

bool Group::touches(const Member& m, const std::vector<DeviceState*>& devices) {
  return std::any_of(m.at.begin(), m.at.end(), [&](const DeviceState* d) {
    return std::binary_search(devices.begin(), devices.end(), d, ByDevice{});
  });
}

// What the switch still has to move, by node.
Group::Load Group::loadOf(const Job& incoming, const std::vector<Job*>& outs,
                          const std::vector<DeviceState*>& wanted) {
  Load load;
  for (const Job* out : outs) {
    for (const auto& [id, m] : out->members) {
      // "only members on wanted devices are saved, the others stay quiet"
      if (m.on() && touches(m, wanted)) load.outgoing[m.node].push_back(id);
    }
  }
  for (const auto& [id, m] : incoming.members) {
    if (m.saved() || m.moving) load.incoming[m.node].push_back(id);
  }
  return load;
}

// The next orders of the switch that brings `incoming` in. True when it is done.
bool Group::advance(Step& s, Job& incoming, const std::vector<Job*>& outs, Purpose purpose) {
  incoming.plannedIn = derivation_;
  for (Job* out : outs) out->plannedIn = derivation_;
  if (!incoming.still() && !incoming.hasSaved()) release(s, incoming);  // stopped half, for another
  std::vector<DeviceState*> wanted = purpose == Purpose::Turn ? incoming.on : homeOf(incoming);
  Load load = loadOf(incoming, outs, wanted);
  if (!load.empty()) {
    if (!incoming.move) incoming.move.emplace();
    unsettled_.insert(&incoming);
    // A rescue uses the room that the failed switch keeps booked for both.
    if (purpose != Purpose::Rescue && !prepareAll(s, incoming, outs, load)) return false;
  }
  if (!load.outgoing.empty()) {
    if (purpose == Purpose::Turn) pin(incoming, true);
    bool still = true;
    for (Job* out : outs) still &= quiesce(s, *out);
    if (!still) return false;  // barrier 1: "a member is saved only when no member of its job runs"
    for (Job* out : outs) saveOff(s, *out, incoming, wanted);
  } else {
    commit(s, incoming, purpose);  // commit point: "all of O that must go is saved"
  }
  restoreReady(s, incoming);
  if (!load.outgoing.empty() || incoming.hasSaved() || incoming.moving()) return false;
  return arrived(s, incoming,
                 purpose);  // barrier 2: "all of I is on its devices and nobody else is"
}

bool Group::arrived(Step& s, Job& incoming, Purpose purpose) {
  if (purpose != Purpose::Turn || incoming.finishing) {
    finishUngranted(s, incoming);
    return true;
  }
  bool locking = std::any_of(incoming.onNode.begin(), incoming.onNode.end(), [](const auto& n) {
    return n.second.quiescing || n.second.releasing || n.second.moves > 0;
  });
  if (locking || paused_) return false;
  grant(s, incoming);
  return true;
}

// "prepare, every node: host room booked for what must be saved, driver able, I's snapshot intact,
// and free + what O frees - residues of others >= what I needs."
bool Group::prepareAll(Step& s, Job& incoming, const std::vector<Job*>& outs, const Load& load) {
  Switch& move = *incoming.move;
  if (move.committed && load.outgoing.empty()) return true;
  move.committed = false;
  move.outs.clear();
  for (const Job* out : outs) move.outs.push_back(out->id);
  std::set<NodeId> nodes;
  for (const auto& [node, members] : load.outgoing) nodes.insert(node);
  for (const auto& [node, members] : load.incoming) nodes.insert(node);
  bool all = true;
  for (NodeId node : nodes) {
    OnNode& here = incoming.onNode[node];
    Booked need{load.at(load.outgoing, node), load.at(load.incoming, node)};
    if (here.booking == OnNode::Booking::None || !here.booked.covers(need)) {
      dropBooking(s, incoming, node);
      here.booking = OnNode::Booking::Asked;
      here.booked = need;
      here.prepare =
          give(s, OrderKind::Prepare, Prepare{{}, node, incoming.id, need.outgoing, need.incoming});
    }
    all &= here.booking == OnNode::Booking::Held;
  }
  if (all && !std::exchange(move.prepared, true)) notice(s, Notice::Kind::SwitchStarted, incoming);
  return all;
}

// True when no member of the job runs, anywhere.
bool Group::quiesce(Step& s, Job& job) {
  for (const auto& [id, m] : job.members) {
    if (!job.runs(m)) continue;
    OnNode& here = job.onNode[m.node];
    if (here.occupied() || !roster_.up(m.node)) continue;
    here.quiescing = true;
    give(s, OrderKind::Quiesce, Quiesce{{}, m.node, job.id, config_.quiesceDeadline});
  }
  touch(job);
  return job.still();
}

void Group::saveOff(Step& s, Job& out, Job& incoming, const std::vector<DeviceState*>& wanted) {
  for (auto& [id, m] : out.members) {
    if (!m.quiet() || !touches(m, wanted) || !roster_.up(m.node)) continue;
    unindex(out, m);
    m.moving = OrderKind::Save;
    index(out, m);
    incoming.move->moved = true;
    ++out.onNode[m.node].moves;
    Order order;
    order.member = id;
    order.forWhom = incoming.id;
    give(s, OrderKind::Save, Save{{}, m.node, out.id, id, m.fact.devices}, std::move(order));
  }
  touch(out);
}

// "I is restored on a device as soon as the room is there, but on approval: it stays quiet"
void Group::restoreReady(Step& s, Job& job) {
  for (auto& [id, m] : job.members) {
    // A member that was seen late may still be brought to rest there.
    bool locking = job.onNode[m.node].locking();
    if (!m.saved() || m.early || locking || !roster_.up(m.node)) continue;
    bool room = std::all_of(m.at.begin(), m.at.end(), [&](const DeviceState* d) {
      bool free = d->present.onlyOf(job) && (!d->holder || d->holder == &job);
      return free && (!d->rescuer || d->rescuer == &job);
    });
    if (!room) continue;
    unindex(job, m);
    m.moving = OrderKind::Restore;
    index(job, m);
    job.cameIn |= !job.rescue;
    job.move->moved = job.move->restored = true;
    ++job.onNode[m.node].moves;
    Order order;
    order.member = id;
    order.forWhom = job.id;
    give(s, OrderKind::Restore, Restore{{}, m.node, job.id, id, m.fact.devices}, std::move(order));
  }
  touch(job);
}

void Group::commit(Step& s, Job& job, Purpose purpose) {
  if (!job.move || job.move->committed) return;
  job.move->committed = true;
  for (auto& [id, m] : job.members) m.early = false;
  // A turn's are dropped by its grant, without an order for that alone.
  if (purpose != Purpose::Turn) dropBookings(s, job);
}

void Group::dropBookings(Step& s, Job& job) {
  for (auto& [node, here] : job.onNode) dropBooking(s, job, node);
}

// A turn past its commit point that does not go on to its grant keeps no room from others.
void Group::dropCommitted(Step& s, Job& job) {
  if (job.move && job.move->committed) dropBookings(s, job);
}

void Group::dropBooking(Step& s, Job& job, NodeId node) {
  OnNode& here = job.onNode[node];
  if (here.booking == OnNode::Booking::None) return;
  here.booking = OnNode::Booking::None;
  give(s, OrderKind::DropBooking, DropBooking{{}, node, job.id});
}

// Brought back without a grant: settle() lets it run, parked.
void Group::finishUngranted(Step& s, Job& job) {
  if (job.queued && job.finishing) dequeue(job);
  if (job.move && job.move->prepared) finishSwitch(s, job);
  setRescue(job, false);
  job.parking = false;
  parking_.erase(&job);
  endMove(s, job);
  job.plannedIn = 0;
  touch(job);
}

// What was said to have started is said to have ended, also when nothing was left to move.
void Group::finishSwitch(Step& s, Job& job) {
  ++switches_;
  job.move->prepared = false;
  notice(s, Notice::Kind::SwitchFinished, job);
}

void Group::endMove(Step& s, Job& job) {
  if (job.move && job.move->prepared) {
    notice(s, Notice::Kind::SwitchRolledBack, job, job.cause);
  }
  dropBookings(s, job);
  if (std::exchange(job.move, std::nullopt)) repeat_ = true;
  job.cameIn = false;
  touch(job);
}

}  // namespace ts
