#include "simgpu/helper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <vector>

#include "simgpu/driver.h"
#include "simgpu/futex.h"
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

[[noreturn]] void crash() {
  ::kill(::getpid(), SIGSEGV);
  for (;;) ::pause();
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
  CUresult unlock();
  bool drain(Until until);
  CUresult failed(CUresult result);  // the state after it; what is lost stays lost
  CUresult knobs(const char* call);
  CUresult answer(HelperCall call, CUresult result);
  void release();
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
    mail.result = answer(mail.call, obey(mail.call, mail.timeoutMs));
    change(mail.state, MailState::Done);
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
  if (anyCard(&Settings::lockCrashes)) crash();
  Until until;
  if (timeoutMs > 0) until = Clock::now() + std::chrono::milliseconds(timeoutMs);
  driver_.gate.close();
  if (!drain(until)) {
    driver_.gate.open();
    return CUDA_ERROR_NOT_READY;
  }
  sleepNs(longest(&Settings::lockNs));
  become(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

CUresult Helper::failed(CUresult result) {
  if (result == CUDA_ERROR_UNKNOWN) become(CU_PROCESS_STATE_FAILED);
  return result;
}

CUresult Helper::checkpoint() {
  if (state() != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  if (CUresult error = knobs("checkpoint")) return error;
  sleepNs(longest(&Settings::saveNs));
  CUresult result = driver_.memory.saveAll();
  if (result != CUDA_SUCCESS) return failed(result);
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
  if (CUresult error = knobs("restore")) return error;
  sleepNs(longest(&Settings::restoreNs));
  if (releaseAtNs_ > 0) release();
  CUresult result = driver_.memory.restoreAll();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && anyCard(&Settings::stickyRestoreOom))
    slot_.unrecoverable = 1;
  if (result != CUDA_SUCCESS) return failed(result);
  slot_.contexts = savedContexts_;
  slot_.restored = 1;
  become(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

CUresult Helper::unlock() {
  if (state() != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  if (CUresult error = knobs("unlock")) return error;
  sleepNs(longest(&Settings::unlockNs));
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
