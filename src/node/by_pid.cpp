#include "node/by_pid.h"

#include <algorithm>
#include <cstring>

#include "backend/process.h"
#include "node/causes.h"
#include "node/device_room.h"
#include "node/mps.h"
#include "node/words.h"
#include "wire/greet.h"

namespace ts::node {
namespace {

constexpr std::int64_t kDefaultLimitMs = 60'000;
constexpr auto kAnswerSlack = 1 * kj::SECONDS;  // for a call that keeps its deadline, just

std::string named(pid_t pid) {
  return "process " + std::to_string(pid);
}
std::string named(const HeldProcess& process) {
  return named(process.identity().pid);
}

bool isPast(Deadline deadline) {
  return std::chrono::steady_clock::now() >= deadline;
}

}  // namespace

// --- admission ----------------------------------------------------------------------------------

std::optional<ByPid::Result> ByPid::forbidden(const Connection& from, pid_t pid) {
  auto look = lookAt(pid);
  if (look.kind == ProcessKind::Thread) {
    return Result{TSL_NO_SUCH_PROCESS, std::to_string(pid) + " is a thread of " +
                                           named(look.leader) + "; name the process"};
  }
  if (look.kind == ProcessKind::Forbidden) {
    return Result{
        TSL_NO_SUCH_PROCESS,
        std::to_string(pid) + " is no process that can be moved; name the pid of a CUDA process"};
  }
  auto process = readProcess(pid);
  const Result nobody{TSL_NO_SUCH_PROCESS, "there is no process " + std::to_string(pid) + " here"};
  if (!process) return nobody;
  auto uid = from.peer().process.uid;
  if (uid != 0 && uid != process->uid) {
    return Result{TSL_PERMISSION, named(pid) + " belongs to uid " + std::to_string(process->uid) +
                                      ", uid " + std::to_string(uid) + " may not move it"};
  }
  if (!parts_.watch.add(process->identity)) return nobody;
  if (auto* m = parts_.registry.memberOf(process->identity)) {
    return Result{TSL_BUSY, named(pid) + " belongs to job " + text(m->job) + ", which takes turns"};
  }
  if (busy_.contains(process->identity)) {
    return Result{TSL_BUSY, named(pid) + " is being moved already"};
  }
  return {};
}

void ByPid::snapshot(Connection& from, std::uint64_t request, const tsl_pid& what) {
  begin(from, request, what, "snapshot", &ByPid::save);
}

void ByPid::restore(Connection& from, std::uint64_t request, const tsl_pid& what) {
  begin(from, request, what, "restore", &ByPid::bringBack);
}

void ByPid::begin(Connection& from, std::uint64_t request, const tsl_pid& what, const char* verb,
                  Work work) {
  if (auto no = forbidden(from, what.pid)) return from.reply(request, no->status, no->detail);
  auto process = readProcess(what.pid);
  auto held = process ? parts_.watch.held(process->identity) : std::nullopt;
  if (!held) return from.reply(request, TSL_NO_SUCH_PROCESS, named(what.pid) + " has ended");
  constexpr std::int64_t kLongestMs = 1000ll * 3600 * 24 * 365;
  auto ms =
      what.deadline_ms > 0 ? std::min<std::int64_t>(what.deadline_ms, kLongestMs) : kDefaultLimitMs;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  run({verb, from.id(), request, *held, ms, deadline}, work);
}

// Answered at the deadline at the latest; nothing is abandoned in mid-call.
void ByPid::run(const Ask& ask, Work work) {
  busy_.insert(ask.process.identity());
  auto done = (this->*work)(ask)
                  .catch_([](kj::Exception&& e) {
                    return Result{TSL_INTERNAL, sentenceOf(e)};
                  })
                  .then([this, ask](Result result) { return ended(ask, std::move(result)); })
                  .fork();
  tasks_.add(done.addBranch().ignoreResult());
  auto limit = ask.limitMs * kj::MILLISECONDS + kAnswerSlack;
  auto overrun = parts_.timer.afterDelay(limit).then([this, ask] { return late(ask); });
  tasks_.add(
      done.addBranch().exclusiveJoin(kj::mv(overrun)).then([this, ask](const Result& result) {
        answer(ask, result);
      }));
}

ByPid::Result ByPid::ended(const Ask& ask, Result result) {
  busy_.erase(ask.process.identity());
  parts_.log.info(Line(ask.verb)
                      .add("pid", std::int64_t(ask.process.identity().pid))
                      .add("status", std::int64_t(result.status))
                      .add("bytes", result.bytes)
                      .add("took_us", result.tookUs)
                      .add("why", result.detail));
  return result;
}

ByPid::Result ByPid::late(const Ask& ask) {
  parts_.log.warning(Line("overdue")
                         .add("order", ask.verb)
                         .add("pid", std::int64_t(ask.process.identity().pid))
                         .add("limit_ms", ask.limitMs));
  return {TSL_TIMED_OUT, std::string(ask.verb) + " of " + named(ask.process) +
                             " runs for more than " + std::to_string(ask.limitMs) +
                             " ms and goes on"};
}

void ByPid::answer(const Ask& ask, const Result& result) {
  auto* c = parts_.find(ask.from);
  if (!c) return;
  tsl_reply r{};
  r.status = result.status;
  r.bytes = result.bytes;
  r.move_us = result.tookUs;
  auto words = printable(result.detail);
  std::memcpy(r.detail, words.data(), std::min(words.size(), sizeof(r.detail) - 1));
  c->reply(ask.request, r);
}

// --- snapshot -----------------------------------------------------------------------------------

kj::Promise<ByPid::Result> ByPid::save(const Ask& ask) {
  return parts_.roll.look().then([this, ask](const Scan& scan) -> kj::Promise<Result> {
    auto* seen = scan.find(ask.process.identity());
    auto pid = ask.process.identity().pid;
    auto cannot = seen && seen->mps ? mpsRefusal(pid, kMpsByDriver) : mpsClient(pid);
    bool moves = !parts_.backend.isWeightless();
    if (moves && !cannot.empty()) return Result{TSL_UNSUPPORTED, cannot};
    auto held = seen ? seen->bytes : DeviceBytes{};
    return parts_.workers
        .call<Result>([&backend = parts_.backend, ask]() -> Result {
          if (!ask.process.isStill())
            return {TSL_NO_SUCH_PROCESS, named(ask.process) + " has ended"};
          auto target = ask.process.target();
          auto quiet = backend.quiesce(target, ask.deadline);
          if (!quiet.ok()) return {statusOf(quiet.code), quiet.detail};
          auto saved = backend.save(target, {});
          if (saved.ok()) {
            return {TSL_OK, "", saved.bytes, std::uint64_t((quiet.took + saved.took).count())};
          }
          auto released = backend.release(target);
          return {statusOf(saved.code),
                  saved.detail + (released.ok() ? "" : "; and then: " + released.detail)};
        })
        .then([this, ask, held](Result result) -> kj::Promise<Result> {
          if (result.status != TSL_OK) return result;
          parts_.registry.setSavedByHand(ask.process.identity(), held);
          if (result.bytes == 0) result.bytes = total(held);
          return measured(ask, held, std::move(result));
        });
  });
}

kj::Promise<ByPid::Result> ByPid::measured(const Ask& ask, const DeviceBytes& held, Result saved) {
  if (parts_.backend.isWeightless()) return saved;
  auto limit = parts_.backend.residueLimit();
  auto deadline = parts_.timer.now() + parts_.freedDeadline;
  return parts_.mover.untilFreed(ask.process.identity(), devicesOf(held), limit, deadline)
      .then([ask, saved, limit](const std::optional<DeviceBytes>& left) -> Result {
        if (left && total(*left) <= limit) return saved;
        auto holds = left ? " still holds " + std::to_string(total(*left)) + " bytes on its devices"
                          : " may still hold its memory: its devices cannot be measured";
        return {TSL_NOT_RELEASED, named(ask.process) + " is saved and" + holds};
      });
}

// --- restore ------------------------------------------------------------------------------------

kj::Promise<ByPid::Result> ByPid::bringBack(const Ask& ask) {
  return parts_.roll.look().then([this, ask](const Scan& scan) -> kj::Promise<Result> {
    const auto* need = parts_.registry.savedByHand(ask.process.identity());
    if (!need) {
      return Result{TSL_INVALID, named(ask.process) +
                                     " was not saved here, so nobody knows what it "
                                     "needs; restore it with what saved it"};
    }
    auto room = parts_.backend.isWeightless()
                    ? Outcome{}
                    : roomFor(*need, named(ask.process), parts_.registry, scan);
    if (!room.ok()) return Result{TSL_NO_DEVICE_MEMORY, room.detail};
    return parts_.workers
        .call<Result>([&backend = parts_.backend, ask]() -> Result {
          if (!ask.process.isStill())
            return {TSL_NO_SUCH_PROCESS, named(ask.process) + " has ended"};
          if (isPast(ask.deadline)) {
            return {TSL_TIMED_OUT, "its " + std::to_string(ask.limitMs) +
                                       " ms were over before the restore began; nothing was done"};
          }
          auto target = ask.process.target();
          auto restored = backend.restore(target, {});
          if (!restored.ok()) return {statusOf(restored.code), restored.detail};
          auto released = backend.release(target);
          if (!released.ok()) return {statusOf(released.code), released.detail};
          return {TSL_OK, "", restored.bytes,
                  std::uint64_t((restored.took + released.took).count())};
        })
        .then([this, ask](Result result) {
          if (result.status == TSL_OK) parts_.registry.forgetSavedByHand(ask.process.identity());
          return result;
        });
  });
}

// --- the rest -----------------------------------------------------------------------------------

void ByPid::adopt() {
  auto saved = parts_.registry.savedByHand();
  for (const auto& [identity, bytes] : saved) {
    if (!parts_.watch.add(identity)) parts_.registry.forgetSavedByHand(identity);
  }
}

void ByPid::taskFailed(kj::Exception&& exception) {
  parts_.log.error(Line("by-pid-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts::node
