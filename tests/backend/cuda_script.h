// A CudaBackend over the fake libcuda, one child process as its target, and the script in between.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "backend/cuda_backend.h"
#include "fake_cuda.h"
#include "support/child.h"

namespace ts::test {

inline constexpr int kRunning = 0, kLocked = 1, kSaved = 2, kFailed = 3;

class CudaScript {
public:
  // `state`: of the child, as the driver sees it. `patience`: with a driver that is silent; one that
  // answers, however late on a busy machine, is heard.
  explicit CudaScript(int state = kRunning,
                      std::chrono::milliseconds patience = std::chrono::minutes(5))
      : beforeCall(patience) {
    fake.states[child.pid()] = state;
  }

  std::chrono::milliseconds beforeCall;
  Child child;
  FakeCuda& fake = fresh();
  std::uint64_t deviceBytes = 4096;
  CudaBackend backend{
      cuda::openDriver({.library = FAKE_CUDA, .kernelModule = ""}),
      [this](pid_t) { return deviceBytes; },
      {.beforeCall = beforeCall, .afterCall = std::chrono::minutes(5)}};
  Target target{.pid = child.pid()};

  void reply(const std::string& verb, Reply reply) { fake.replies[verb].push_back(reply); }
  int state() {
    std::lock_guard lock(fake.mutex);
    return fake.states[child.pid()];
  }
  using Calls = std::vector<std::string>;
  Calls calls() {
    std::lock_guard lock(fake.mutex);
    return fake.calls;
  }

private:
  // The library stays loaded, so the script of the test before must go.
  static FakeCuda& fresh() {
    void* library = ::dlopen(FAKE_CUDA, RTLD_NOW);
    REQUIRE(library != nullptr);
    FakeCuda* (*script)() = nullptr;
    *reinterpret_cast<void**>(&script) = ::dlsym(library, "fakeCudaScript");
    REQUIRE(script != nullptr);
    FakeCuda& it = *script();
    std::lock_guard lock(it.mutex);
    it.version = 12080;
    it.init = cuda::Result::Success;
    it.states.clear();
    it.replies.clear();
    it.calls.clear();
    it.remappings = 0;
    return it;
  }
};

inline Deadline inFiveMinutes() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(5);
}

}  // namespace ts::test
