// Misbehaviour on demand: delays, hangs, failures and crashes of single calls, as the card's
// control file says now.
#pragma once

#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "simgpu/card.h"
#include "simgpu/cuda_abi.h"

namespace simgpu {

class Knobs {
public:
  // Delays or hangs the calling thread as told; the result is what the call is to fail with, if
  // anything. `pid`: whose settings count.
  CUresult pass(Card& card, std::string_view call, pid_t pid = ::getpid());
  // What the answer of a call that has done its work becomes.
  CUresult answer(Card& card, std::string_view call, CUresult result, pid_t pid = ::getpid());
  // This process is to die in, or after, the call.
  static bool crashes(Card& card, std::string_view call, Crash when);

private:
  struct Count {
    FailKnob knob;  // calls are counted from when the knob was turned to this
    std::uint64_t calls = 0;
  };
  CUresult failure(const Settings& settings, std::string_view call, bool after);
  bool countedOut(const FailKnob& fail, std::string_view call);

  std::mutex mutex_;
  std::map<std::string, Count, std::less<>> counts_;
};

// As a program that touches memory which is not there.
[[noreturn]] void crash();

}  // namespace simgpu
