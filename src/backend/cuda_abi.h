// What we use of the CUDA driver's binary interface, in our own words: no toolkit is needed to
// build. A test holds this against <cuda.h> wherever a toolkit of 12.8 or newer is found.
#pragma once

#include <cstdint>

namespace ts::cuda {

enum class Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  OperatingSystem = 304,
  IllegalState = 401,
  NotReady = 600,
  NotPermitted = 800,
  NotSupported = 801,
};

// CUprocessState. A driver may answer with a number that is not here.
enum class ProcessState : int { Running = 0, Locked = 1, Checkpointed = 2, Failed = 3 };

struct LockArgs {
  unsigned int timeoutMs = 0;  // 0 would be: for ever
  unsigned int reserved0 = 0;
  std::uint64_t reserved1[7] = {};
};

struct CheckpointArgs {
  std::uint64_t reserved[8] = {};
};

struct RestoreArgs {  // we never remap GPUs, so this is all zero
  void* gpuPairs = nullptr;
  unsigned int gpuPairsCount = 0;
  char reserved[52 - sizeof(void*)] = {};
  std::uint64_t reserved1 = 0;
};

struct UnlockArgs {
  std::uint64_t reserved[8] = {};
};

static_assert(sizeof(LockArgs) == 64);
static_assert(sizeof(CheckpointArgs) == 64);
static_assert(sizeof(RestoreArgs) == 64);
static_assert(sizeof(UnlockArgs) == 64);

}  // namespace ts::cuda
