#include "node/by_pid.h"

#include <algorithm>
#include <cstring>

#include "backend/process.h"
#include "node/causes.h"

namespace ts::node {
namespace {

constexpr std::int64_t kDefaultDeadlineMs = 60'000;

std::string named(pid_t pid) { return "process " + std::to_string(pid); }

}  // namespace

std::optional<ByPid::Result> ByPid::forbidden(const Connection& from, pid_t pid) {
  auto look = lookAt(pid);
  if (look.kind == ProcessKind::Thread) {
    return Result{TSL_NO_SUCH_PROCESS, std::to_string(pid) + " is a thread of " +
                                           named(look.leader) + "; name the process"};
  }
  auto process = readProcess(pid);
  if (look.kind == ProcessKind::Forbidden || !process) {
    return Result{TSL_NO_SUCH_PROCESS, "there is no process " + std::to_string(pid) +
                                           " that could be saved"};
  }
  auto uid = from.peer().process.uid;
  if (uid != 0 && uid != process->uid) {
    return Result{TSL_PERMISSION, named(pid) + " belongs to uid " + std::to_string(process->uid) +
                                      ", uid " + std::to_string(uid) + " may not move it"};
  }
  if (auto* m = parts_.registry.memberOf(process->identity)) {
    return Result{TSL_BUSY, named(pid) + " belongs to job " + m->job.group + "/" + m->job.name +
                                ", which takes turns"};
  }
  if (busy_.contains(pid)) return Result{TSL_BUSY, named(pid) + " is being moved already"};
  return {};
}

void ByPid::snapshot(Connection& from, std::uint64_t request, const tsl_pid& what) {
  start(from, request, what, "snapshot", &ByPid::save);
}

void ByPid::restore(Connection& from, std::uint64_t request, const tsl_pid& what) {
  start(from, request, what, "restore", &ByPid::bringBack);
}

void ByPid::start(Connection& from, std::uint64_t request, const tsl_pid& what, const char* verb,
                  kj::Promise<Result> (ByPid::*work)(const Ask&)) {
  if (auto no = forbidden(from, what.pid)) return from.reply(request, no->status, no->detail);
  auto ms = what.deadline_ms > 0 ? what.deadline_ms : kDefaultDeadlineMs;
  Ask ask{from.id(), request, what.pid,
          std::chrono::steady_clock::now() + std::chrono::milliseconds(ms)};
  busy_.insert(ask.pid);
  tasks_.add((this->*work)(ask)
                 .catch_([](kj::Exception&& e) {
                   return Result{TSL_INTERNAL, e.getDescription().cStr()};
                 })
                 .then([this, ask, verb](Result result) {
                   busy_.erase(ask.pid);
                   parts_.log.info(Line(verb)
                                       .add("pid", std::int64_t(ask.pid))
                                       .add("status", std::int64_t(result.status))
                                       .add("bytes", result.bytes)
                                       .add("took_us", result.tookUs)
                                       .add("why", result.detail));
                   answer(ask, result);
                 }));
}

void ByPid::answer(const Ask& ask, const Result& result) {
  auto* c = parts_.find(ask.from);
  if (!c) return;
  tsl_reply r{};
  r.status = result.status;
  r.bytes = result.bytes;
  r.move_us = result.tookUs;
  auto text = printable(result.detail);
  std::memcpy(r.detail, text.data(), std::min(text.size(), sizeof(r.detail) - 1));
  c->reply(ask.request, r);
}

kj::Promise<ByPid::Result> ByPid::save(const Ask& ask) {
  return parts_.roll.look().then([this, ask](const Scan& scan) {
    auto held = scan.bytesOf(ask.pid);
    return parts_.workers
        .call<Result>([&backend = parts_.backend, ask]() -> Result {
          Target target{ask.pid};
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
          saved_[ask.pid] = held;
          if (result.bytes == 0) {
            for (const auto& [device, n] : held) result.bytes += n;
          }
          return measured(ask.pid, std::move(result));
        });
  });
}

kj::Promise<ByPid::Result> ByPid::measured(pid_t pid, Result saved) {
  if (parts_.backend.isWeightless()) return saved;
  auto limit = parts_.backend.residueLimit();
  auto deadline = parts_.timer.now() + 30 * kj::SECONDS;
  return parts_.mover.untilFreed(pid, limit, deadline)
      .then([pid, saved, limit](const DeviceBytes& left) -> Result {
        Bytes sum = 0;
        for (const auto& [device, n] : left) sum += n;
        if (sum <= limit) return saved;
        return {TSL_NOT_RELEASED, named(pid) + " is saved and still holds " + std::to_string(sum) +
                                      " bytes on its devices"};
      });
}

kj::Promise<ByPid::Result> ByPid::bringBack(const Ask& ask) {
  return parts_.roll.look().then([this, ask](const Scan& scan) -> kj::Promise<Result> {
    for (const auto& [device, need] : saved_[ask.pid]) {
      auto memory = scan.memory.find(device);
      if (memory == scan.memory.end() || memory->second.freeBytes >= need) continue;
      return Result{TSL_NO_DEVICE_MEMORY,
                    "device " + std::to_string(device) + " has " +
                        std::to_string(memory->second.freeBytes) + " bytes free, needed are " +
                        std::to_string(need) + "; held by " +
                        holdersOf(parts_.registry, scan, device)};
    }
    return parts_.workers
        .call<Result>([&backend = parts_.backend, ask]() -> Result {
          Target target{ask.pid};
          auto restored = backend.restore(target, {});
          if (!restored.ok()) return {statusOf(restored.code), restored.detail};
          auto released = backend.release(target);
          if (!released.ok()) return {statusOf(released.code), released.detail};
          return {TSL_OK, "", restored.bytes,
                  std::uint64_t((restored.took + released.took).count())};
        })
        .then([this, ask](Result result) {
          if (result.status == TSL_OK) saved_.erase(ask.pid);
          return result;
        });
  });
}

void ByPid::taskFailed(kj::Exception&& exception) {
  parts_.log.error(Line("by-pid-failed").add("why", exception.getDescription().cStr()));
}

}  // namespace ts::node
