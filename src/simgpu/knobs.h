// Misbehaviour on demand: delays, hangs and failures of single calls, as the card's control file
// says now.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "simgpu/card.h"
#include "simgpu/cuda_abi.h"

namespace simgpu {

class Knobs {
public:
  // Delays or hangs the calling thread as told; the result is what the call is to fail with, if
  // anything.
  CUresult pass(Card& card, std::string_view call);
  // What the answer of a call that has done its work becomes.
  CUresult answer(Card& card, std::string_view call, CUresult result);

private:
  CUresult failure(Card& card, std::string_view call, bool after);
  bool countedOut(const Settings* settings, std::string_view call, std::uint64_t onCall);

  std::mutex mutex_;
  const Settings* counted_ = nullptr;  // calls are counted from the last change of the control file
  std::map<std::string, std::uint64_t, std::less<>> calls_;
};

}  // namespace simgpu
