#include "node/reception.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "config/step_name.h"
#include "node/local_versions.h"
#include "node/mps.h"
#include "node/words.h"

namespace ts::node {
namespace {

constexpr std::size_t kLongestClaim = 8192;
constexpr std::int64_t kLongestPatienceMs = 24 * 3600 * 1000;
constexpr std::uint32_t kMostParts = 128;  // of a heterogeneous job of Slurm's
constexpr auto kOnlySlurm = "only processes that root started may speak for a step of a Slurm job";

bool moves(const std::string& backend) {
  return backend != "none" && backend != "turns";
}

std::string quoted(std::string_view text) {
  return "\"" + printable(text) + "\"";
}

// Why it cannot be one, or nothing.
std::string nameProblem(const char* what, std::string_view name) {
  if (isName(name)) return "";
  if (name.empty()) return std::string("no ") + what + " is named";
  return std::string("a ") + what + " named " + quoted(name) + ": letters, digits and . _ - only";
}

// The plugin is root's, but finds names in the user's environment. The parts of a heterogeneous
// job, with numbers one after the other, are named after the first.
bool isNamedAfter(std::uint32_t slurmJob, std::string_view name) {
  std::uint32_t number = 0;
  auto error = std::from_chars(name.data(), name.data() + name.size(), number).ec;
  return error == std::errc{} && isStepName(name) && number <= slurmJob &&
         slurmJob - number < kMostParts;
}

}  // namespace

void Reception::received(Connection& from, const tsl_message& m, pid_t speaker) {
  auto request = m.header.request;
  auto peer = from.peer().process.identity.pid;
  if (speaker != peer) {
    return from.reply(request, TSL_FORKED,
                      "process " + std::to_string(speaker) + " speaks on a connection of process " +
                          std::to_string(peer) + ": join anew after a fork");
  }
  switch (m.header.type) {
    case TSL_HELLO:
      return hello(from, m);
    case TSL_CLAIM: {
      auto& claim = claims_[from.id()];
      claim += textOf(m.u.claim.devices).substr(0, kLongestClaim + 1 - claim.size());
      return;
    }
    case TSL_JOIN:
      return join(from, request, m.u.join);
    case TSL_ACQUIRE:
      return parts_.participants.acquire(from, request, m.u.acquire);
    case TSL_CANCEL:
      return parts_.participants.cancel(from, m.u.cancel.target);
    case TSL_YIELD:
      return parts_.participants.yield(from, request,
                                       {m.u.yield.epoch_generation, m.u.yield.epoch_counter});
    case TSL_LEAVE:
      return parts_.participants.leave(from, request);
    case TSL_STATUS:
      return status(from, request);
    case TSL_SNAPSHOT:
      return parts_.byPid.snapshot(from, request, m.u.pid);
    case TSL_RESTORE:
      return parts_.byPid.restore(from, request, m.u.pid);
    case TSL_DOCTOR:
      return parts_.doctor(from.id(), request);
    case TSL_STEP_BEGIN:
    case TSL_STEP_END:
    case TSL_OUTLOOK:
    case TSL_ACCOUNT:
      return step(from, request, m.header.type, m.u.step);
    default:
      return;  // checkMessage() lets no other through
  }
}

void Reception::closed(Connection& connection) {
  claims_.erase(connection.id());
  parts_.participants.closed(connection);
}

void Reception::hello(Connection& from, const tsl_message& m) {
  VersionRange theirs{m.u.hello.min_version, m.u.hello.max_version};
  if (auto version = commonVersion(kLocalVersions, theirs)) {
    from.agree(*version);
    return from.reply(m.header.request, TSL_OK, "");
  }
  from.reply(m.header.request, TSL_VERSION_MISMATCH, versionsDiffer(theirs));
  from.finish();
}

std::string Reception::takeClaim(const Connection& from) {
  auto text = claims_[from.id()];
  claims_.erase(from.id());
  return text;
}

void Reception::join(Connection& from, std::uint64_t request, const tsl_join& what) {
  const auto& peer = from.peer().process;
  auto claim = takeClaim(from);
  JobSpec spec{.key = {std::string(textOf(what.group)), std::string(textOf(what.job))},
               .uid = peer.uid,
               .gang = what.gang,
               .priority = what.priority,
               .keepBroken = what.on_broken == 1,
               .backend = std::string(textOf(what.backend))};
  if (spec.key.name.empty()) {
    spec.key.name = "u" + std::to_string(peer.uid) + "." + std::to_string(peer.identity.pid);
  }
  if (what.on_broken > 1) {
    return from.reply(request, TSL_INVALID,
                      "on_broken " + std::to_string(what.on_broken) + ": out of its range");
  }
  bool atGate = (what.flags & TSL_JOIN_AT_GATE) != 0;
  if (atGate && !from.peer().isTrusted) return from.reply(request, TSL_PERMISSION, kOnlySlurm);
  if (what.flags & TSL_JOIN_NO_DEVICES) claim = "none";
  auto wish = resolved(std::move(spec), claim);
  if (wish.status == TSL_OK && moves(wish.spec.backend)) {
    wish.why = mpsClient(peer.identity.pid);
    if (!wish.why.empty()) wish.status = TSL_UNSUPPORTED;
  }
  if (wish.status != TSL_OK) return from.reply(request, wish.status, wish.why);
  wish.spec.slurmJob = parts_.steps.slurmJobFor(wish.spec);
  auto patience = std::clamp<std::int64_t>(what.deadline_ms, 0, kLongestPatienceMs);
  parts_.participants.join(from, request,
                           {.spec = std::move(wish.spec),
                            .devices = std::move(wish.devices),
                            .atGate = atGate,
                            .until = parts_.timer.now() + patience * kj::MILLISECONDS});
}

// What the node itself can say of a join: names, ranges, devices, the backend.
Reception::Wish Reception::resolved(JobSpec spec, const std::string& claimText) {
  auto no = [](tsl_status status, std::string why) {
    return Wish{.status = status, .why = std::move(why)};
  };
  if (spec.backend.empty()) spec.backend = parts_.defaultBackend;
  for (auto problem : {nameProblem("group", spec.key.group), nameProblem("job", spec.key.name)}) {
    if (!problem.empty()) return no(TSL_INVALID, problem);
  }
  if (spec.gang > TSL_MOST_IN_GANG) {
    return no(TSL_INVALID, "gang " + std::to_string(spec.gang) + ": out of its range");
  }
  if (claimText.size() > kLongestClaim) {
    return no(TSL_INVALID, "a claim of more than " + std::to_string(kLongestClaim) +
                               " bytes; name each device once, or claim all with an empty one");
  }
  auto claim = parseClaim(claimText, parts_.devices);
  if (!claim.ok) return no(TSL_INVALID, claim.why);
  if (claim.devices.empty()) {
    return no(TSL_NO_CLAIM, claimText.empty()
                                ? "this node has no devices to take turns on"
                                : "the claim " + quoted(claimText) + " names no device");
  }
  auto cannot = unsupported(spec.backend, claim.devices);
  if (!cannot.empty()) return no(TSL_UNSUPPORTED, cannot);
  return {.spec = std::move(spec), .devices = std::move(claim.devices)};
}

// --- steps of Slurm jobs
// --------------------------------------------------------------------------

void Reception::step(Connection& from, std::uint64_t request, std::uint16_t type,
                     const tsl_step& what) {
  if (!from.peer().isTrusted) return from.reply(request, TSL_PERMISSION, kOnlySlurm);
  if (type == TSL_STEP_BEGIN) return beginStep(from, request, what);
  if (type == TSL_STEP_END) {
    return parts_.steps.end(from, request, what.slurm_job, what.slurm_step);
  }
  JobName job{std::string(textOf(what.group)), std::string(textOf(what.job))};
  if (type == TSL_OUTLOOK) return parts_.steps.outlook(from, request, job);
  parts_.steps.account(from, request, what.slurm_job, what.slurm_step);
}

void Reception::beginStep(Connection& from, std::uint64_t request, const tsl_step& what) {
  const auto& peer = from.peer().process;
  auto wish = resolved({.key = {std::string(textOf(what.group)), std::string(textOf(what.job))},
                        .uid = peer.uid,
                        .gang = what.gang,
                        .priority = what.priority,
                        .backend = std::string(textOf(what.backend)),
                        .slurmJob = what.slurm_job},
                       takeClaim(from));
  if (wish.status != TSL_OK) return from.reply(request, wish.status, wish.why);
  if (!isNamedAfter(what.slurm_job, wish.spec.key.name)) {
    return from.reply(request, TSL_PERMISSION,
                      "a step of Slurm job " + std::to_string(what.slurm_job) +
                          " cannot have the name " + quoted(wish.spec.key.name));
  }
  Step step{.daemon = peer,
            .slurmJob = what.slurm_job,
            .slurmStep = what.slurm_step,
            .key = wish.spec.key,
            .uid = peer.uid,
            .devices = std::move(wish.devices)};
  auto patience = std::clamp<std::int64_t>(what.deadline_ms, 0, kLongestPatienceMs);
  parts_.steps.begin(from, request,
                     {std::move(step), std::move(wish.spec), patience * kj::MILLISECONDS});
}

std::string Reception::unsupported(const std::string& backend,
                                   const std::vector<std::uint32_t>& devices) {
  auto it = parts_.backends.find(backend);
  if (it == parts_.backends.end()) {
    std::string names;
    for (const auto& [name, whyNot] : parts_.backends) names += (names.empty() ? "" : ", ") + name;
    return "no backend " + quoted(backend) + " here; there are " + names;
  }
  if (!it->second.empty()) return "backend " + backend + " cannot be used here: " + it->second;
  if (!moves(backend)) return "";
  for (const auto& d : parts_.devices) {
    bool claimed = std::ranges::find(devices, d.index) != devices.end();
    if (claimed && !d.trouble.empty()) return d.trouble;
  }
  return "";
}

void Reception::status(Connection& from, std::uint64_t request) {
  tsl_reply r{};
  auto words = parts_.status();
  if (const auto* p = parts_.participants.of(from)) {
    if (p->entered) {
      r.epoch_generation = p->entered->generation;
      r.epoch_counter = p->entered->counter;
    }
    words = "job " + text(p->job) + ", " +
            (p->entered ? "in a slice"
             : p->wait  ? "waiting"
                        : "idle") +
            "; " + words;
  }
  std::memcpy(r.detail, words.data(), std::min(words.size(), sizeof(r.detail) - 1));
  from.reply(request, r);
}

}  // namespace ts::node
