// What all processes that use the same cards share: plain words in two kinds of mapped file,
// DIR/host and DIR/N/state. Everything here survives the death of any process at any point.
#pragma once

#include <atomic>
#include <cstdint>

#include "simgpu/shared_mutex.h"

namespace simgpu {

constexpr unsigned kMaxCards = 16;
constexpr unsigned kMaxProcesses = 512;
constexpr std::uint64_t kGranule = 64 * 1024;  // what card memory is counted in
constexpr std::uint64_t kMagic = 0x326d6973'75706701u;

enum class MailState : std::uint32_t { Empty, Posted, Taken, Done };
enum class HelperCall : std::uint32_t { Lock, Checkpoint, Restore, Unlock };

enum UsedFeature : std::uint32_t { kUsedIpc = 1, kUsedUvm = 2, kUsedNvls = 4 };

// One order at a time from any process to a target's helper thread. The state is a futex word.
struct Mailbox {
  std::atomic<MailState> state;
  HelperCall call;
  std::uint32_t timeoutMs;  // of a lock; 0: none
  std::int32_t caller;
  std::uint64_t callerStart;
  std::int32_t result;
};

struct ProcessSlot {
  std::atomic<std::int32_t> pid;  // 0: free
  std::atomic<std::uint64_t> startTime;
  std::atomic<std::uint32_t> state;     // CUprocessState
  std::atomic<std::uint32_t> contexts;  // bit N: has device state on card N now
  std::atomic<std::int32_t> helperTid;
  std::atomic<std::uint32_t> unrecoverable;
  std::atomic<std::uint32_t> restored;  // at least once
  std::atomic<std::uint32_t> features;  // that it has used: bits of UsedFeature
  std::atomic<std::uint64_t> savedBytes;
  std::atomic<std::uint64_t> bytes[kMaxCards];
  SharedMutex callers;  // held by the process whose order is in the mailbox
  Mailbox mail;
};

struct HostState {
  std::uint64_t magic;
  std::uint32_t cards;
  SharedMutex lock;  // guards which slot and which granule belongs to whom
  ProcessSlot processes[kMaxProcesses];
};

constexpr unsigned kBusyWindows = 4;  // seconds of history, for utilisation

struct CardState {
  std::uint64_t magic;
  std::uint64_t granules;
  SharedMutex compute;  // one kernel at a time
  std::atomic<std::uint64_t> busyNs;
  std::atomic<std::uint64_t> kernelEndNs;
  std::atomic<std::uint64_t> linkFreeNs[2];
  std::atomic<std::uint64_t> windowSecond[kBusyWindows];
  std::atomic<std::uint64_t> windowBusyNs[kBusyWindows];
  std::atomic<std::uint64_t> usedGranules;

  // Behind this struct, of each granule: slot + 1, or 0.
  std::uint16_t* owners() { return reinterpret_cast<std::uint16_t*>(this + 1); }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<MailState>::is_always_lock_free);

}  // namespace simgpu
