#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>

#include "simgpu/api.h"
#include "simgpu/futex.h"
#include "simgpu/process_id.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kPeerLookNs = 5'000'000;
constexpr std::uint64_t kLookAgainNs = 50'000'000;  // is the target still alive?

struct Target {
  Host* host = nullptr;
  unsigned index = 0;
  pid_t pid = 0;
  ProcessSlot& slot() const { return host->slot(index); }
  bool lives() const { return slot().pid == pid && host->lives(index); }
};

bool permitted(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d", pid);
  struct stat info = {};
  return ::geteuid() == 0 || (::stat(path, &info) == 0 && info.st_uid == ::geteuid());
}

// A thread id names its process, as with the driver.
CUresult findTarget(int pid, Target& out) {
  auto process = processOfThread(pid);
  if (!process) return CUDA_ERROR_INVALID_VALUE;
  out.host = sharedHost();
  if (out.host == nullptr) return CUDA_ERROR_NO_DEVICE;
  auto index = out.host->find(*process);
  if (!index) return CUDA_ERROR_NOT_INITIALIZED;
  if (!permitted(*process)) return CUDA_ERROR_NOT_PERMITTED;
  out.index = *index;
  out.pid = *process;
  return CUDA_SUCCESS;
}

// Takes back an order that the helper has not begun: a stopped target never will.
bool withdrawn(Mailbox& mail) {
  MailState posted = MailState::Posted;
  return mail.state.compare_exchange_strong(posted, MailState::Empty);
}

// Waits for the helper's answer; nothing when the target died or the time is over.
std::optional<CUresult> answer(const Target& target, std::optional<std::uint64_t> untilNs) {
  Mailbox& mail = target.slot().mail;
  for (;;) {
    MailState now = mail.state;
    if (now == MailState::Done) return static_cast<CUresult>(mail.result);
    if (!target.lives()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (untilNs && nowNs() >= *untilNs && withdrawn(mail)) return std::nullopt;
    waitWhile(mail.state, now, kLookAgainNs);
  }
}

// Callers of one target wait for each other; who died in mid-call left an order that ends by
// itself.
CUresult takeTurn(const Target& target, std::optional<std::uint64_t> untilNs) {
  while (!target.slot().callers.lockFor(kLookAgainNs)) {
    if (!target.lives()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (untilNs && nowNs() >= *untilNs) return CUDA_ERROR_NOT_READY;
  }
  if (target.slot().mail.state != MailState::Empty) answer(target, std::nullopt);
  return CUDA_SUCCESS;
}

// With the knob `peers`: what a member of a set waits for, as processes that share memory or
// collectives make the real driver wait. Locks never do.
bool heldUp(const Target& target, std::optional<HelperCall> call, CUprocessState peer) {
  if (!call)
    return target.slot().state == CU_PROCESS_STATE_RUNNING && peer != CU_PROCESS_STATE_RUNNING;
  if (*call == HelperCall::Checkpoint) return peer == CU_PROCESS_STATE_RUNNING;
  return *call == HelperCall::Unlock && peer == CU_PROCESS_STATE_CHECKPOINTED;
}

void waitForSet(const Target& target, std::optional<HelperCall> call, const std::set<int>& set) {
  for (int pid : set)
    for (auto peer = target.host->find(pid); pid != target.pid && peer && target.lives();
         peer = target.host->find(pid)) {
      auto state = static_cast<CUprocessState>(target.host->slot(*peer).state.load());
      if (!heldUp(target, call, state)) break;
      sleepNs(kPeerLookNs);
    }
}

// No call: a question for the state.
void waitForPeers(const Target& target, std::optional<HelperCall> call) {
  for (unsigned c = 0; c < target.host->cardCount(); ++c) {
    auto settings = target.host->card(c).settings();
    for (const auto& set : settings->peers)
      if (set.contains(target.pid)) waitForSet(target, call, set);
  }
}

CUresult order(const Target& target, HelperCall call, unsigned timeoutMs) {
  std::optional<std::uint64_t> until;
  if (timeoutMs > 0) until = nowNs() + timeoutMs * 1'000'000ull;
  if (CUresult error = takeTurn(target, until)) return error;
  Mailbox& mail = target.slot().mail;
  mail.call = call;
  mail.timeoutMs = timeoutMs;
  mail.caller = ::getpid();
  mail.callerStart = startTimeOf(::getpid()).value_or(0);
  change(mail.state, MailState::Posted);
  CUresult result = answer(target, until).value_or(CUDA_ERROR_NOT_READY);
  if (target.lives()) mail.state = MailState::Empty;
  target.slot().callers.unlock();
  return result;
}

bool traces(Host& host, TraceLevel least) {
  for (unsigned i = 0; i < host.cardCount(); ++i)
    if (host.card(i).settings()->trace >= least) return true;
  return false;
}

// The first card decides that says anything of this process.
template <class Value>
Value said(const Target& target, Value Settings::*field, Value nothing) {
  for (unsigned i = 0; i < target.host->cardCount(); ++i) {
    Value value = (*target.host->card(i).settingsOf(target.pid)).*field;
    if (value != nothing) return value;
  }
  return nothing;
}

void trace(Host& host, const char* when, const char* call, pid_t target, const char* end) {
  char line[160];
  std::snprintf(line, sizeof line, "%s %s pid=%d caller=%d%s", when, call, target, ::getpid(), end);
  host.trace(line);
}

// A call on another process, with its beginning and its end in the trace.
template <class Body>
CUresult callOn(const char* name, int pid, TraceLevel least, Body body) {
  return guarded([&] {
    Target target;
    if (CUresult error = findTarget(pid, target)) return error;
    bool traced = traces(*target.host, least);
    if (traced) trace(*target.host, "begin", name, target.pid, "");
    CUresult result = body(target);
    char end[32];
    std::snprintf(end, sizeof end, " code=%d", result);
    if (traced) trace(*target.host, "end", name, target.pid, end);
    return result;
  });
}

CUresult checkpointCall(const char* name, int pid, HelperCall call, unsigned timeoutMs) {
  return callOn(name, pid, TraceLevel::Checkpoint, [&](const Target& target) {
    if (call == HelperCall::Lock && said(target, &Settings::noContext, false))
      return CUDA_ERROR_NOT_INITIALIZED;
    waitForPeers(target, call);
    return order(target, call, timeoutMs);
  });
}

// Asked in the caller: the target need not be able to answer.
CUresult stateOf(const Target& target, CUprocessState& out) {
  static Knobs knobs;
  Card& card = target.host->card(0);
  if (CUresult error = knobs.pass(card, "state", target.pid)) return error;
  waitForPeers(target, std::nullopt);
  auto state = static_cast<int>(target.slot().state.load());
  out = static_cast<CUprocessState>(
      said(target, &Settings::driverState, std::optional<int>()).value_or(state));
  return knobs.answer(card, "state", CUDA_SUCCESS, target.pid);
}

bool allZero(const void* from, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(from);
  return std::all_of(p, p + bytes, [](unsigned char c) { return c == 0; });
}

template <class Args>
bool reservedIsZero(const Args* args) {
  return args == nullptr || allZero(args->reserved, sizeof args->reserved);
}

}  // namespace

SIMGPU_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  bool good =
      args == nullptr || (args->reserved0 == 0 && allZero(args->reserved1, sizeof args->reserved1));
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  return checkpointCall("lock", pid, HelperCall::Lock, args == nullptr ? 0 : args->timeoutMs);
}

SIMGPU_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args) {
  if (!reservedIsZero(args)) return CUDA_ERROR_INVALID_VALUE;
  return checkpointCall("checkpoint", pid, HelperCall::Checkpoint, 0);
}

SIMGPU_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  if (!reservedIsZero(args)) return CUDA_ERROR_INVALID_VALUE;
  // State returns to the card it came from: a pair that moves it is refused.
  if (args != nullptr)
    for (unsigned i = 0; i < args->gpuPairsCount; ++i)
      if (std::memcmp(&args->gpuPairs[i].oldUuid, &args->gpuPairs[i].newUuid, sizeof(CUuuid)) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
  return checkpointCall("restore", pid, HelperCall::Restore, 0);
}

SIMGPU_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args) {
  if (!reservedIsZero(args)) return CUDA_ERROR_INVALID_VALUE;
  return checkpointCall("unlock", pid, HelperCall::Unlock, 0);
}

SIMGPU_API CUresult cuCheckpointProcessGetState(int pid, CUprocessState* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return callOn("state", pid, TraceLevel::All,
                [&](const Target& target) { return stateOf(target, *out); });
}

SIMGPU_API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* out) {
  return guarded([&] {
    Target target;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = findTarget(pid, target)) return error;
    *out = target.slot().helperTid;
    return CUDA_SUCCESS;
  });
}

}  // namespace simgpu
