#include "node/mover.h"

#include <kj/debug.h>

#include <algorithm>

#include "node/causes.h"
#include "node/device_room.h"
#include "node/facts.h"
#include "node/mps.h"
#include "node/words.h"

namespace ts::node {
namespace {

constexpr int kMaxRounds = 10;
constexpr auto kFirstPause = 1 * kj::MILLISECONDS;
constexpr auto kLongestPause = 100 * kj::MILLISECONDS;

std::string processText(const Member& m) {
  return text(m.process.identity);
}

// The first of several that is no success, else the last.
Outcome worst(std::vector<Outcome> outcomes) {
  Outcome out;
  for (auto& o : outcomes) {
    out.bytes += o.bytes;
    if (out.ok() && !o.ok()) {
      auto bytes = out.bytes;
      out = std::move(o);
      out.bytes = bytes;
    }
  }
  return out;
}

// The number may be another process's by now.
BackendOutcome goneBelow() {
  return {.code = BackendOutcome::Code::TargetGone,
          .detail = "it has ended",
          .after = TargetState::Gone};
}

Outcome goneOutcome(MemberId member) {
  return {.code = Outcome::Code::Gone,
          .cause = Cause::TargetGone,
          .detail = "member " + std::to_string(std::uint64_t(member)) + " has ended"};
}

}  // namespace

SnapshotBackend* Mover::backendOf(const JobName& job) const {
  Job* j = parts_.registry.job(job);
  auto it = j ? parts_.backends.find(j->spec.backend) : parts_.backends.end();
  return it == parts_.backends.end() ? nullptr : it->second;
}

Member* Mover::memberOf(const JobName& job, MemberId member) {
  auto* m = parts_.registry.member(member);
  return m && m->job == job && !m->ended ? m : nullptr;
}

bool Mover::isBusy(const JobName& job) const {
  Job* j = parts_.registry.job(job);
  return j && std::ranges::any_of(j->members, [&](MemberId id) { return busy_.contains(id); });
}

Outcome Mover::withMembers(const JobName& job, Outcome outcome) {
  for (auto* m : parts_.registry.membersOf(job)) {
    if (!m->ended) outcome.members.push_back(factOf(*m));
  }
  return outcome;
}

// Others of the job may be moving at the same time: their own orders tell of them.
Outcome Mover::withMember(MemberId member, Outcome outcome) {
  auto* m = parts_.registry.member(member);
  if (m && !m->ended) outcome.members.push_back(factOf(*m));
  return outcome;
}

void Mover::setResidency(Member& member, Residency residency) {
  if (member.residency == residency) return;
  member.residency = residency;
  parts_.registry.record(member);
}

// One call of the backend for one member. Where the state is afterwards is what the call read.
Soon<BackendOutcome> Mover::run(MemberId id, Residency during, Call call) {
  auto& m = *parts_.registry.member(id);
  auto* backend = backendOf(m.job);
  KJ_REQUIRE(backend != nullptr, "no such backend", m.job.name.c_str());
  auto before = m.residency;
  if (backend->isWeightless()) {
    auto process = parts_.watch.held(m.process.identity);
    auto target = process ? process->target() : Target{m.process.identity.pid};
    return finish(id, before, call(*backend, target));
  }
  setResidency(m, during);
  busy_.insert(id);
  looked_.erase(id);
  inherited_.erase(id);
  return parts_.workers
      .call<BackendOutcome>([backend, process = parts_.watch.held(m.process.identity), call] {
        if (!process || !process->isStill()) return goneBelow();
        return call(*backend, process->target());
      })
      .then([this, id, before](BackendOutcome o) { return finish(id, before, std::move(o)); },
            [this, id, before](kj::Exception&& e) {
              return finish(
                  id, before,
                  {.code = BackendOutcome::Code::DriverError, .detail = e.getDescription().cStr()});
            });
}

BackendOutcome Mover::finish(MemberId id, Residency before, BackendOutcome outcome) {
  busy_.erase(id);
  if (auto* m = parts_.registry.member(id)) setResidency(*m, residencyOf(outcome, before));
  return outcome;
}

// --- quiesce ------------------------------------------------------------------------------------

// Members appear while others are being stopped: looked for until a look finds none that is new.
struct Mover::Sweep {
  JobName job;
  Deadline deadline;
  std::vector<MemberId> locked;  // by this order: those are let go if it fails
  int round = 0;
};

Soon<Outcome> Mover::quiesce(JobName job, kj::Duration deadline) {
  auto sweeping = kj::heap<Sweep>();
  sweeping->job = std::move(job);
  sweeping->deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(deadline / kj::NANOSECONDS);
  return sweep(kj::mv(sweeping));
}

Soon<Outcome> Mover::sweep(kj::Own<Sweep> s) {
  if (parts_.roll.needsLook(s->job)) {
    return parts_.roll.look().then(
        [this, s = kj::mv(s)](const Scan&) mutable { return stopAll(kj::mv(s)).promise(); });
  }
  parts_.roll.joined(s->job);
  return stopAll(kj::mv(s));
}

// "a lock may hang all of its device until a reboot": known in the field, and not tried.
Outcome sharesByMps(const Member& m) {
  auto out = failure(Cause::Unsupported, mpsRefusal(m.process.identity.pid, kMpsByDriver));
  out.lasting = true;
  return out;
}

Soon<Outcome> Mover::stopAll(kj::Own<Sweep> s) {
  std::vector<Soon<Outcome>> calls;
  for (auto* m : parts_.registry.membersOf(s->job)) {
    if (m->mps && !m->ended) return sweepBack(s->job, std::move(s->locked), sharesByMps(*m));
    if (m->ended || m->residency != Residency::Resident) continue;
    auto id = m->id;
    auto call = [deadline = s->deadline](SnapshotBackend& b, const Target& t) {
      return b.quiesce(t, deadline);
    };
    calls.push_back(
        run(id, Residency::Quiescing, call)
            .then([did = "quiesce of " + processText(*m), id, &s = *s](BackendOutcome o) {
              if (o.ok()) s.locked.push_back(id);
              if (o.code == BackendOutcome::Code::TargetGone) return Outcome{};
              return outcomeOf(o, did);
            }));
  }
  bool calm = calls.empty();
  return all(std::move(calls))
      .then([this, s = kj::mv(s), calm](std::vector<Outcome> outcomes) mutable -> Soon<Outcome> {
        auto outcome = worst(std::move(outcomes));
        if (outcome.ok() && calm) return withMembers(s->job, std::move(outcome));
        if (outcome.ok() && ++s->round >= kMaxRounds) {
          outcome = failure(Cause::Overdue, "new processes of the job appeared in " +
                                                std::to_string(kMaxRounds) + " looks in a row");
        }
        if (outcome.ok()) return sweep(kj::mv(s));
        return sweepBack(s->job, std::move(s->locked), std::move(outcome));
      });
}

Soon<Outcome> Mover::sweepBack(JobName job, std::vector<MemberId> locked, Outcome why) {
  return releaseEach(job, std::move(locked)).then([this, job, why](Outcome released) {
    auto out = why;
    if (!released.ok()) out.detail += "; and then: " + released.detail;
    return withMembers(job, std::move(out));
  });
}

// --- release ------------------------------------------------------------------------------------

Soon<Outcome> Mover::release(JobName job) {
  std::vector<MemberId> quiet;
  for (auto* m : parts_.registry.membersOf(job)) {
    if (m->ended) continue;
    if (m->residency == Residency::Quiet) quiet.push_back(m->id);
    if (m->residency == Residency::Saved) {
      return withMembers(job,
                         failure(Cause::DriverError,
                                 processText(*m) + " is saved: a job runs whole or not at all"));
    }
  }
  return releaseEach(job, std::move(quiet)).then([this, job](Outcome o) {
    return withMembers(job, std::move(o));
  });
}

Soon<Outcome> Mover::releaseEach(JobName job, std::vector<MemberId> members) {
  std::vector<Soon<Outcome>> calls;
  for (auto id : members) {
    auto* m = memberOf(job, id);
    if (!m) continue;
    auto call = [](SnapshotBackend& b, const Target& t) { return b.release(t); };
    calls.push_back(run(id, Residency::Quiet, call)
                        .then([did = "release of " + processText(*m)](BackendOutcome o) {
                          if (o.code == BackendOutcome::Code::TargetGone) return Outcome{};
                          return outcomeOf(o, did);
                        }));
  }
  return all(std::move(calls)).then(worst);
}

// --- save ---------------------------------------------------------------------------------------

Soon<Outcome> Mover::save(JobName job, MemberId member) {
  auto* m = memberOf(job, member);
  if (!m) return goneOutcome(member);
  if (m->residency == Residency::Absent) return withMember(member, {});
  // By an earlier life of the daemon, which may not have come to measure it.
  if (m->residency == Residency::Saved) return measureSaved(job, member, {});
  if (m->residency != Residency::Quiet) {
    return withMember(
        member, failure(Cause::DriverError, processText(*m) + " is not quiet and cannot be saved"));
  }
  // Written down before the call: this daemon may not come to measure it.
  m->unreleased = !backendOf(job)->isWeightless();
  auto call = [](SnapshotBackend& b, const Target& t) { return b.save(t, {}); };
  return run(member, Residency::Saving, call)
      .then([this, job, member,
             did = "save of " + processText(*m)](BackendOutcome o) -> Soon<Outcome> {
        auto outcome = outcomeOf(o, did);
        if (!outcome.ok()) return withMember(member, std::move(outcome));
        return measureSaved(job, member, std::move(outcome));
      });
}

// Success from below is no evidence: the bytes must be seen to be gone.
Soon<Outcome> Mover::measureSaved(JobName job, MemberId member, Outcome moved) {
  auto* m = memberOf(job, member);
  if (!m) return goneOutcome(member);
  auto* backend = backendOf(job);
  if (backend->isWeightless()) return withMember(member, std::move(moved));
  auto deadline = parts_.timer.now() + parts_.freedDeadline;
  return untilFreed(m->process.identity, devicesOf(m->bytes), backend->residueLimit(), deadline)
      .then([this, job, member, moved](std::optional<DeviceBytes> left) {
        return checkSaved(job, member, moved, left);
      });
}

Outcome Mover::checkSaved(const JobName& job, MemberId member, Outcome moved,
                          const std::optional<DeviceBytes>& left) {
  auto* m = memberOf(job, member);
  if (!m) return goneOutcome(member);
  auto limit = backendOf(job)->residueLimit();
  m->residue = left.value_or(DeviceBytes{});
  m->unreleased = !left || total(*left) > limit;
  parts_.registry.record(*m);
  if (m->unreleased) {
    auto need = left ? total(*left) : m->total();
    auto holds = left ? " still holds " + std::to_string(need) +
                            " bytes on its devices, allowed are " + std::to_string(limit)
                      : " may still hold its memory: its devices cannot be measured";
    auto out = failure(Cause::NotReleased, processText(*m) + " is saved and" + holds);
    out.need = need;
    return withMember(member, std::move(out));
  }
  parts_.bookings.saved(job, m->total(), m->bytes);
  if (moved.bytes == 0) moved.bytes = m->total();
  return withMember(member, std::move(moved));
}

std::vector<MemberId> Mover::releasedLate(const Scan& scan) {
  std::vector<MemberId> gone;
  for (auto& [id, m] : parts_.registry.members()) {
    auto* backend = m.unreleased && m.residency == Residency::Saved ? backendOf(m.job) : nullptr;
    if (!backend || busy_.contains(id)) continue;
    auto left = scan.bytesOf(m.process.identity, devicesOf(m.bytes));
    if (!left || total(*left) > backend->residueLimit()) continue;
    m.residue = *left;
    m.unreleased = false;
    parts_.registry.record(m);
    gone.push_back(id);
  }
  return gone;
}

kj::Promise<std::optional<DeviceBytes>> Mover::untilFreed(Identity process,
                                                          std::vector<std::uint32_t> devices,
                                                          Bytes limit, kj::TimePoint deadline) {
  return pollFreed(process, std::move(devices), limit, deadline, kFirstPause);
}

kj::Promise<std::optional<DeviceBytes>> Mover::pollFreed(Identity process,
                                                         std::vector<std::uint32_t> devices,
                                                         Bytes limit, kj::TimePoint deadline,
                                                         kj::Duration pause) {
  return parts_.roll.look().then(
      [=, this](const Scan& scan) -> kj::Promise<std::optional<DeviceBytes>> {
        auto left = scan.bytesOf(process, devices);
        bool isFreed = left && total(*left) <= limit;
        if (isFreed || parts_.timer.now() >= deadline) return left;
        return parts_.timer.afterDelay(pause).then([=, this] {
          return pollFreed(process, devices, limit, deadline, std::min(pause * 2, kLongestPause));
        });
      });
}

// --- restore ------------------------------------------------------------------------------------

Soon<Outcome> Mover::restore(JobName job, MemberId member) {
  auto* m = memberOf(job, member);
  if (!m) return goneOutcome(member);
  if (m->residency == Residency::Quiet || m->residency == Residency::Resident ||
      m->residency == Residency::Absent) {
    return withMember(member, {});
  }
  if (m->residency != Residency::Saved) {
    return withMember(member, failure(Cause::DriverError, processText(*m) + " is not saved"));
  }
  if (backendOf(job)->isWeightless()) return bringBack(job, member);
  return parts_.roll.look().then(
      [this, job, member](const Scan& scan) { return restoreInto(job, member, scan).promise(); });
}

Soon<Outcome> Mover::restoreInto(JobName job, MemberId member, const Scan& scan) {
  auto* m = memberOf(job, member);
  if (!m) return goneOutcome(member);
  auto room = roomFor(m->needed(), processText(*m), parts_.registry, scan);
  if (room.ok()) return bringBack(job, member);
  if (inherited_.contains(member)) {  // what lacks may be what it has taken itself
    auto earlier = "a restore of " + processText(*m) + ", ordered before this daemon was started";
    room = refusal(Cause::Busy, earlier + ", may still be under way: " + room.detail);
  }
  return withMember(member, std::move(room));
}

Soon<Outcome> Mover::bringBack(JobName job, MemberId member) {
  auto* m = memberOf(job, member);
  auto call = [](SnapshotBackend& b, const Target& t) { return b.restore(t, {}); };
  return run(member, Residency::Restoring, call)
      .then([this, job, member, did = "restore of " + processText(*m)](BackendOutcome o) {
        auto outcome = outcomeOf(o, did);
        auto* m = memberOf(job, member);
        if (m && outcome.ok()) {
          m->residue.clear();
          parts_.registry.record(*m);
          parts_.bookings.restored(job, m->bytes);
          if (outcome.bytes == 0) outcome.bytes = m->total();
        }
        if (m && outcome.lasting) setResidency(*m, Residency::Faulted);
        return withMember(member, std::move(outcome));
      });
}

// --- the rest -----------------------------------------------------------------------------------

Soon<Outcome> Mover::discard(MemberId member) {
  auto* m = parts_.registry.member(member);
  if (!m) return Outcome{};
  auto* backend = backendOf(m->job);
  if (!backend) return Outcome{};
  Target target{m->process.identity.pid};
  if (backend->isWeightless()) return outcomeOf(backend->discard(target), "discard");
  return parts_.workers.call<BackendOutcome>([backend, target] { return backend->discard(target); })
      .then(
          [did = "discard of " + processText(*m)](BackendOutcome o) { return outcomeOf(o, did); });
}

kj::Promise<void> Mover::adopt(MemberId id) {
  auto* m = parts_.registry.member(id);
  auto* backend = m ? backendOf(m->job) : nullptr;
  if (!backend || busy_.contains(id)) return kj::READY_NOW;
  Target target{m->process.identity.pid};
  if (backend->isWeightless()) {
    // What it knew went with the last life of the daemon; the journal has it.
    bool away = m->residency == Residency::Saved;
    if (away || m->residency == Residency::Quiet) backend->quiesce(target, Deadline::max());
    if (away) backend->save(target, {});
    return kj::READY_NOW;
  }
  looked_.insert(id);
  if (m->residency == Residency::Restoring) inherited_.insert(id);
  return parts_.workers
      .call<TargetState>([backend, process = parts_.watch.held(m->process.identity)] {
        return process && process->isStill() ? backend->state(process->target())
                                             : TargetState::Gone;
      })
      .then([this, id](TargetState state) {
        // Else a call has begun since, and may have ended: its own look is the later one.
        bool isLast = looked_.erase(id) > 0;
        auto* m = parts_.registry.member(id);
        if (state != TargetState::Saved) inherited_.erase(id);
        if (m && isLast) setResidency(*m, residencyOf(state, Residency::Faulted));
      });
}

}  // namespace ts::node
