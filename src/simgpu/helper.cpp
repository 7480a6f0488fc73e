#include "simgpu/helper.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <vector>

#include "simgpu/driver.h"
#include "simgpu/futex.h"
#include "simgpu/host_memory.h"
#include "simgpu/process_id.h"
#include "simgpu/quiet_thread.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kLookAgainNs = 1'000'000'000;
constexpr std::uint64_t kSoonNs = 1'000'000;

const char* nameOf(HelperCall call) {
  constexpr const char* kNames[] = {"lock", "checkpoint", "restore", "unlock"};
  return kNames[static_cast<unsigned>(call)];
}

class Helper {
public:
  explicit Helper(Driver& driver) : driver_(driver), slot_(driver.host.slot(driver.slot)) {}
  [[noreturn]] void serve();

private:
  CUresult obey(HelperCall call, std::uint32_t timeoutMs);
  CUresult lock(std::uint32_t timeoutMs);
  CUresult checkpoint();
  CUresult restore();
  CUresult bringBack();
  CUresult unlock();
  bool drain(Until until);
  CUresult failed(CUresult result);  // the state after it; what is lost stays lost
  CUresult knobs(const char* call);
  CUresult answer(HelperCall call, CUresult result);
  void release();
  bool isStranded();  // the caller died meanwhile, and the cards do not forgive that
  CUresult strand();
  bool isRestorable();
  bool isMpsClient();
  bool hasRoom();  // for what a checkpoint would keep
  bool crashes(HelperCall call, Crash when);
  [[noreturn]] void crashWhenHeard();
  std::vector<Card*> cards();
  std::uint64_t longest(std::uint64_t Settings::*field);
  bool anyCard(bool Settings::*flag);

  CUprocessState state() const { return static_cast<CUprocessState>(slot_.state.load()); }
  void become(CUprocessState state) { slot_.state = static_cast<std::uint32_t>(state); }

  Driver& driver_;
  ProcessSlot& slot_;
  std::uint32_t savedContexts_ = 0;
  std::uint64_t releaseAtNs_ = 0;  // when the cards are to be freed of what is saved; 0: they are
};

void Helper::serve() {
  Mailbox& mail = slot_.mail;
  for (;;) {
    MailState posted = MailState::Posted;
    if (!mail.state.compare_exchange_strong(posted, MailState::Taken)) {
      waitWhile(mail.state, posted, releaseAtNs_ > 0 ? kSoonNs : kLookAgainNs);
      if (releaseAtNs_ > 0 && nowNs() >= releaseAtNs_) release();
      continue;
    }
    HelperCall call = mail.call;
    if (crashes(call, Crash::Before)) crash();
    mail.result = answer(call, obey(call, mail.timeoutMs));
    change(mail.state, MailState::Done);
    if (crashes(call, Crash::After)) crashWhenHeard();
  }
}

CUresult Helper::obey(HelperCall call, std::uint32_t timeoutMs) {
  switch (call) {
    case HelperCall::Lock:
      return lock(timeoutMs);
    case HelperCall::Checkpoint:
      return checkpoint();
    case HelperCall::Restore:
      return restore();
    case HelperCall::Unlock:
      return unlock();
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// The cards that this process uses, or the first it sees: their control files rule its checkpoint
// calls.
std::vector<Card*> Helper::cards() {
  std::vector<Card*> used;
  for (unsigned i = 0; i < driver_.host.cardCount(); ++i)
    if (driver_.usesCard(i)) used.push_back(&driver_.host.card(i));
  if (used.empty()) used.push_back(driver_.card(0));
  return used;
}

CUresult Helper::knobs(const char* call) {
  for (Card* card : cards())
    if (CUresult error = driver_.knobs(*card).pass(*card, call)) return error;
  return CUDA_SUCCESS;
}

CUresult Helper::answer(HelperCall call, CUresult result) {
  for (Card* card : cards()) result = driver_.knobs(*card).answer(*card, nameOf(call), result);
  return result;
}

std::uint64_t Helper::longest(std::uint64_t Settings::*field) {
  std::uint64_t ns = 0;
  for (Card* card : cards()) ns = std::max(ns, (*card->settings()).*field);
  return ns;
}

bool Helper::anyCard(bool Settings::*flag) {
  return std::ranges::any_of(cards(), [=](Card* card) { return (*card->settings()).*flag; });
}

bool Helper::drain(Until until) {
  while (anyCard(&Settings::lockTimesOut)) {
    if (until && Clock::now() >= *until) return false;
    sleepNs(10'000'000);
  }
  return driver_.gate.drained(until) && driver_.streams.idle(until);
}

CUresult Helper::lock(std::uint32_t timeoutMs) {
  if (state() != CU_PROCESS_STATE_RUNNING) return CUDA_ERROR_ILLEGAL_STATE;
  if (CUresult error = knobs("lock")) return error;
  Until until;
  if (timeoutMs > 0) until = Clock::now() + std::chrono::milliseconds(timeoutMs);
  if (isMpsClient()) return CUDA_ERROR_NOT_SUPPORTED;
  driver_.gate.close();
  if (!drain(until)) {
    driver_.gate.open();
    return CUDA_ERROR_NOT_READY;
  }
  sleepNs(longest(&Settings::lockNs));
  become(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

bool Helper::crashes(HelperCall call, Crash when) {
  return std::ranges::any_of(cards(),
                             [&](Card* card) { return Knobs::crashes(*card, nameOf(call), when); });
}

void Helper::crashWhenHeard() {
  Mailbox& mail = slot_.mail;
  while (mail.state == MailState::Done && startTimeOf(mail.caller) == mail.callerStart)
    waitWhile(mail.state, MailState::Done, kSoonNs);
  crash();
}

bool Helper::isStranded() {
  const Mailbox& mail = slot_.mail;
  return anyCard(&Settings::strands) && startTimeOf(mail.caller) != mail.callerStart;
}

// Locked, with its bytes on the card, whatever the call was to do.
CUresult Helper::strand() {
  driver_.gate.close();
  become(CU_PROCESS_STATE_LOCKED);
  return CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult Helper::failed(CUresult result) {
  if (result == CUDA_ERROR_UNKNOWN) become(CU_PROCESS_STATE_FAILED);
  return result;
}

CUresult Helper::checkpoint() {
  if (state() != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  if (CUresult error = knobs("checkpoint")) return error;
  sleepNs(longest(&Settings::saveNs));
  if (anyCard(&Settings::mig) || !hasRoom()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (isStranded()) return strand();
  CUresult result = driver_.memory.saveAll();
  if (result != CUDA_SUCCESS) return failed(result);
  slot_.savedBytes = driver_.memory.allBytes();
  std::uint64_t delay = longest(&Settings::releaseDelayNs);
  releaseAtNs_ = nowNs() + delay;
  if (delay == 0) release();
  become(CU_PROCESS_STATE_CHECKPOINTED);
  return CUDA_SUCCESS;
}

void Helper::release() {
  driver_.memory.freeSaved();
  savedContexts_ = slot_.contexts.exchange(0);
  releaseAtNs_ = 0;
}

CUresult Helper::restore() {
  if (state() != CU_PROCESS_STATE_CHECKPOINTED) return CUDA_ERROR_ILLEGAL_STATE;
  if (slot_.unrecoverable != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  CUresult result = knobs("restore");
  if (result == CUDA_SUCCESS && !isRestorable()) {
    slot_.unrecoverable = 1;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (result == CUDA_SUCCESS) result = bringBack();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && anyCard(&Settings::stickyRestoreOom))
    slot_.unrecoverable = 1;
  if (result != CUDA_SUCCESS) return failed(result);
  slot_.contexts = savedContexts_;
  slot_.savedBytes = 0;
  slot_.restored = 1;
  become(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

CUresult Helper::bringBack() {
  sleepNs(longest(&Settings::restoreNs));
  if (releaseAtNs_ > 0) release();
  return driver_.memory.restoreAll();
}

// It may have used what the driver saves and cannot bring back.
bool Helper::isRestorable() {
  constexpr int kIpcDriver = 610;
  for (Card* card : cards()) {
    auto settings = card->settings();
    bool ipc =
        settings->ipc == Feature::On && std::atoi(settings->driverVersion.c_str()) >= kIpcDriver;
    bool lost = ((slot_.features & kUsedIpc) != 0 && !ipc) ||
                ((slot_.features & kUsedUvm) != 0 && settings->uvm != Feature::On) ||
                ((slot_.features & kUsedNvls) != 0 && settings->nvls != Feature::On);
    if (lost) return false;
  }
  return true;
}

bool Helper::isMpsClient() {
  return std::ranges::any_of(cards(),
                             [](Card* card) { return card->settings()->mps != Feature::Off; });
}

bool Helper::hasRoom() {
  std::uint64_t bytes = driver_.memory.allBytes();
  return std::ranges::all_of(cards(), [&](Card* card) {
    auto settings = card->settings();
    return bytes + hostMemory().pinned() <= settings->hostMemory.value_or(~0ull) &&
           bytes + driver_.host.savedBytes() <= settings->store.value_or(~0ull);
  });
}

CUresult Helper::unlock() {
  if (state() != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  if (CUresult error = knobs("unlock")) return error;
  sleepNs(longest(&Settings::unlockNs));
  if (isStranded()) return strand();
  become(CU_PROCESS_STATE_RUNNING);
  driver_.gate.open();
  return CUDA_SUCCESS;
}

}  // namespace

void startHelper(Driver& driver) {
  std::latch started(1);
  quietThread([&driver, &started] {
    ::prctl(PR_SET_NAME, "simgpu-helper");
    driver.host.slot(driver.slot).helperTid = ::gettid();
    Helper helper(driver);
    started.count_down();
    helper.serve();
  }).detach();
  started.wait();
}

}  // namespace simgpu
