#include "simgpu/knobs.h"

#include <signal.h>
#include <unistd.h>

#include "simgpu/process_id.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kLookAgainNs = 10'000'000;

template <class Map>
auto setting(const Map& map, std::string_view call) {
  auto it = map.find(call);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

}  // namespace

void crash() {
  ::kill(::getpid(), SIGSEGV);
  for (;;) ::pause();
}

CUresult Knobs::pass(Card& card, std::string_view call, pid_t pid) {
  auto settings = card.settingsOf(pid);
  if (!settings->anyKnob()) return CUDA_SUCCESS;
  if (std::uint64_t delay = setting(settings->delayNs, call)) sleepNs(delay);
  while (setting(card.settingsOf(pid)->hang, call)) sleepNs(kLookAgainNs);
  return failure(*settings, call, false);
}

CUresult Knobs::answer(Card& card, std::string_view call, CUresult result, pid_t pid) {
  auto settings = card.settingsOf(pid);
  if (result != CUDA_SUCCESS || !settings->anyKnob()) return result;
  return failure(*settings, call, true);
}

bool Knobs::crashes(Card& card, std::string_view call, Crash when) {
  auto settings = card.settings();
  return !settings->crash.empty() && setting(settings->crash, call) == when;
}

CUresult Knobs::failure(const Settings& settings, std::string_view call, bool after) {
  FailKnob fail = setting(settings.fail, call);
  if (fail.code == 0 || fail.after != after) return CUDA_SUCCESS;
  bool now = fail.onCall == 0 || countedOut(fail, call);
  return now ? static_cast<CUresult>(fail.code) : CUDA_SUCCESS;
}

bool Knobs::countedOut(const FailKnob& fail, std::string_view call) {
  std::lock_guard lock(mutex_);
  Count& count = counts_[std::string(call)];
  if (!(count.knob == fail)) count = {fail, 0};
  return ++count.calls == fail.onCall;
}

}  // namespace simgpu
