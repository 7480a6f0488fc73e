#include "simgpu/knobs.h"

#include <unistd.h>

#include "simgpu/process_id.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kLookAgainNs = 10'000'000;

// What is set for this call in this process, or for this call in all.
template <class Map>
auto setting(const Map& map, std::string_view call) {
  auto it = map.find(std::string(call) + "@" + std::to_string(::getpid()));
  if (it == map.end()) it = map.find(call);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

}  // namespace

CUresult Knobs::pass(Card& card, std::string_view call) {
  auto settings = card.settings();
  if (!settings->anyKnob()) return CUDA_SUCCESS;
  if (std::uint64_t delay = setting(settings->delayNs, call)) sleepNs(delay);
  while (setting(card.settings()->hang, call)) sleepNs(kLookAgainNs);
  return failure(card, call, false);
}

CUresult Knobs::answer(Card& card, std::string_view call, CUresult result) {
  CUresult lost = result == CUDA_SUCCESS ? failure(card, call, true) : CUDA_SUCCESS;
  return lost != CUDA_SUCCESS ? lost : result;
}

CUresult Knobs::failure(Card& card, std::string_view call, bool after) {
  auto settings = card.settings();
  FailKnob fail = setting(settings->fail, call);
  if (fail.code == 0 || fail.after != after) return CUDA_SUCCESS;
  bool now = fail.onCall == 0 || countedOut(settings.get(), call, fail.onCall);
  return now ? static_cast<CUresult>(fail.code) : CUDA_SUCCESS;
}

bool Knobs::countedOut(const Settings* settings, std::string_view call, std::uint64_t onCall) {
  std::lock_guard lock(mutex_);
  if (counted_ != settings) calls_.clear();
  counted_ = settings;
  return ++calls_[std::string(call)] == onCall;
}

}  // namespace simgpu
