#include "node/preparation.h"

#include <algorithm>

#include "node/device_room.h"
#include "node/host_memory.h"
#include "node/members.h"
#include "node/words.h"

namespace ts::node {
namespace {

// A cgroup over several jobs bounds them together.
void merge(std::vector<HostLimit>& into, std::vector<HostLimit> more) {
  for (auto& limit : more) {
    auto same = std::ranges::find(into, limit.name, &HostLimit::name);
    if (same == into.end()) {
      into.push_back(std::move(limit));
      continue;
    }
    same->room = std::min(same->room, limit.room);
    same->jobs.insert(same->jobs.end(), limit.jobs.begin(), limit.jobs.end());
  }
}

std::string lacks(const Bookings::Verdict& v, Registry& registry, const Scan& scan) {
  if (v.unmeasured) return scan.whyUnmeasured(*v.device);
  auto held = v.device ? "; it is held by " + holdersOf(registry, scan, *v.device) : "";
  return v.what + ": needs " + std::to_string(v.need) + " bytes, free are " +
         std::to_string(v.free) + held;
}

}  // namespace

Soon<Outcome> Preparation::prepare(JobName waiter, std::vector<MemberId> outgoing,
                                   std::vector<MemberId> incoming) {
  // Asked before anything has moved: what has begun can be written down to its end.
  if (auto full = parts_.registry.whyFull(); !full.empty()) return refusal(Cause::NoRecord, full);
  auto ask = parts_.bookings.ask(waiter);
  if (isWeightless(outgoing, incoming)) {
    return book(waiter, outgoing, incoming, {}, {});
  }
  // Looked at first: what an outgoing job has allocated since is booked too.
  return parts_.roll.look().then([this, waiter, outgoing, incoming, ask](Scan scan) {
    auto question = questionFor(outgoing, incoming);
    return parts_.workers.call<Findings>([question] { return look(question); })
        .then([this, waiter, outgoing, incoming, ask,
               scan = std::move(scan)](const Findings& findings) {
          if (!parts_.bookings.isAsked(waiter, ask)) {
            return refusal(Cause::Stale,
                           "the booking of " + text(waiter) + " was dropped before it was made");
          }
          // A restore that a killed daemon had ordered ends after the next one has looked.
          if (findings.strayed != MemberId{}) parts_.strayed(findings.strayed);
          return book(waiter, outgoing, incoming, findings, scan);
        });
  });
}

bool Preparation::isWeightless(const std::vector<MemberId>& members) {
  return std::ranges::all_of(members, [&](MemberId id) {
    auto* m = parts_.registry.member(id);
    auto* backend = m ? parts_.mover.backendOf(m->job) : nullptr;
    return !backend || backend->isWeightless();
  });
}

Preparation::Question Preparation::questionFor(const std::vector<MemberId>& outgoing,
                                               const std::vector<MemberId>& incoming) {
  Question q{.root = parts_.root};
  auto add = [&](const Member& m) {
    auto* backend = parts_.mover.backendOf(m.job);
    if (!backend || backend->isWeightless()) return;
    if (std::ranges::find(q.backends, backend) == q.backends.end()) q.backends.push_back(backend);
    if (m.residency == Residency::Saved) {
      q.snapshots.push_back({backend, m.process.identity.pid, m.id});
    } else {
      q.charged.emplace_back(m.process.identity.pid, m.job);
    }
  };
  for (auto id : outgoing) {
    if (auto* m = parts_.registry.member(id); m && m->residency != Residency::Saved) add(*m);
  }
  for (auto id : incoming) {
    if (auto* m = parts_.registry.member(id); m && m->residency == Residency::Saved) add(*m);
  }
  return q;
}

// A driver's call about it would hang, and its device with it.
std::string Preparation::whyStuck(const Question& question) {
  auto why = [](pid_t pid) {
    return "process " + std::to_string(pid) +
           " is stopped by a signal, and its state cannot move; scontrol resume of its Slurm job, "
           "or "
           "kill -CONT " +
           std::to_string(pid) + ", lets it go on";
  };
  for (const auto& [pid, job] : question.charged)
    if (isStopped(pid)) return "job " + text(job) + ": " + why(pid);
  for (const auto& snapshot : question.snapshots)
    if (isStopped(snapshot.pid)) return why(snapshot.pid);
  return "";
}

// On a worker: nothing of the daemon's own is touched.
Preparation::Findings Preparation::look(const Question& question) {
  Findings found;
  if (found.broken = whyStuck(question); !found.broken.empty()) {
    found.cause = Cause::Blocked;
    return found;
  }
  found.limits.push_back({"MemAvailable", memAvailable(question.root), {}});
  for (const auto& [pid, job] : question.charged) {
    merge(found.limits, cgroupLimits(pid, job, question.root));
  }
  for (auto* backend : question.backends) {
    auto probe = backend->probe();
    if (probe.usable) continue;
    found.broken = "backend " + backend->name() + " cannot be used: " + probe.detail;
    found.cause = Cause::Unsupported;
    return found;
  }
  for (const auto& [backend, pid, member] : question.snapshots) {
    auto state = backend->state({pid});
    if (state == TargetState::Saved) continue;
    found.broken = "pid " + std::to_string(pid) + " should be saved and is " + toText(state);
    found.cause = state == TargetState::Gone ? Cause::TargetGone : Cause::DriverError;
    if (state != TargetState::Gone) found.strayed = member;
    return found;
  }
  return found;
}

Need Preparation::needOf(const std::vector<MemberId>& outgoing,
                         const std::vector<MemberId>& incoming) {
  Need need;
  for (auto id : outgoing) {
    auto* m = parts_.registry.member(id);
    if (!m || m->ended || m->residency == Residency::Saved) continue;
    need.host[m->job] += m->total();
    for (const auto& [device, n] : m->bytes) need.frees[device] += n;
  }
  for (auto id : incoming) {
    auto* m = parts_.registry.member(id);
    if (!m || m->ended || m->residency != Residency::Saved) continue;
    for (const auto& [device, n] : m->needed()) need.takes[device] += n;
  }
  return need;
}

Outcome Preparation::book(const JobName& waiter, const std::vector<MemberId>& outgoing,
                          const std::vector<MemberId>& incoming, const Findings& findings,
                          const Scan& scan) {
  if (!findings.broken.empty()) return refusal(findings.cause, findings.broken);
  DeviceBytes free;
  for (const auto& [device, memory] : scan.memory) free[device] = memory.freeBytes;
  auto verdict = parts_.bookings.book(waiter, needOf(outgoing, incoming),
                                      parts_.registry.savedBytes(), findings.limits, free);
  if (verdict.ok) return {};
  auto out = refusal(verdict.device ? Cause::NoDeviceMemory : Cause::NoHostMemory,
                     lacks(verdict, parts_.registry, scan));
  out.need = verdict.need;
  out.free = verdict.free;
  return out;
}

}  // namespace ts::node
