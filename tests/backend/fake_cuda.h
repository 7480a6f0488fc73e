// The script that the fake libcuda.so.1 of these tests plays: states, answers, and who called what.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda_abi.h"

namespace ts::test {

// One scripted answer of an entry point. Without one, the state machine of the real driver answers.
struct Reply {
  cuda::Result result = cuda::Result::Success;
  std::optional<int> becomes;  // the state that the process is in then; nothing: as it was
  std::function<void()> during = [] {};  // runs inside the call
};

struct FakeCuda {
  std::mutex mutex;
  int version = 12080;
  cuda::Result init = cuda::Result::Success;
  std::map<int, int> states;                         // who is not in it has no context
  std::map<std::string, std::deque<Reply>> replies;  // by verb: "lock", "restore", "state"…
  std::vector<std::string> calls;  // "lock", "restore"…; state queries are not listed
  unsigned remappings = 0;         // of devices, asked of all restores
  unsigned int timeoutMs = 0;      // of the last lock
};

extern "C" FakeCuda* fakeCudaScript();

}  // namespace ts::test
