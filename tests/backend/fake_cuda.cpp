// A libcuda.so.1 that obeys a script. Built twice: as a driver of today, and as one without
// checkpoint.
#include "fake_cuda.h"

using namespace ts::cuda;
using ts::test::FakeCuda;
using ts::test::Reply;

namespace {

FakeCuda& script() {
  static FakeCuda it;
  return it;
}

std::optional<Reply> scripted(const std::string& verb) {
  std::lock_guard lock(script().mutex);
  auto it = script().replies.find(verb);
  if (it == script().replies.end() || it->second.empty()) return std::nullopt;
  Reply reply = it->second.front();
  it->second.pop_front();
  return reply;
}

[[maybe_unused]] Result move(const std::string& verb, int pid, ProcessState from, ProcessState to) {
  {
    std::lock_guard lock(script().mutex);
    script().calls.push_back(verb);
  }
  std::optional<Reply> reply = scripted(verb);
  if (reply) reply->during();
  std::lock_guard lock(script().mutex);
  auto it = script().states.find(pid);
  if (reply) {
    if (reply->becomes) script().states[pid] = *reply->becomes;
    return reply->result;
  }
  if (it == script().states.end()) return Result::NotInitialized;
  if (it->second != static_cast<int>(from)) return Result::IllegalState;
  it->second = static_cast<int>(to);
  return Result::Success;
}

}  // namespace

namespace ts::test {
extern "C" FakeCuda* fakeCudaScript() {
  return &script();
}
}  // namespace ts::test

extern "C" {

Result cuInit(unsigned int) {
  return script().init;
}

Result cuDriverGetVersion(int* version) {
  *version = script().version;
  return Result::Success;
}

Result cuGetErrorName(Result result, const char** name) {
  static const std::map<Result, const char*> kNames = {
      {Result::Success, "CUDA_SUCCESS"},
      {Result::InvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {Result::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {Result::NotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
      {Result::OperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM"},
      {Result::IllegalState, "CUDA_ERROR_ILLEGAL_STATE"},
      {Result::NotReady, "CUDA_ERROR_NOT_READY"},
      {Result::NotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
      {Result::NotSupported, "CUDA_ERROR_NOT_SUPPORTED"},
  };
  auto it = kNames.find(result);
  if (it == kNames.end()) return Result::InvalidValue;
  *name = it->second;
  return Result::Success;
}

#ifndef WITHOUT_CHECKPOINT

Result cuCheckpointProcessLock(int pid, LockArgs* args) {
  script().timeoutMs = args->timeoutMs;
  return move("lock", pid, ProcessState::Running, ProcessState::Locked);
}

Result cuCheckpointProcessCheckpoint(int pid, CheckpointArgs*) {
  return move("checkpoint", pid, ProcessState::Locked, ProcessState::Checkpointed);
}

Result cuCheckpointProcessRestore(int pid, RestoreArgs* args) {
  script().remappings += args == nullptr ? 0 : args->gpuPairsCount;
  return move("restore", pid, ProcessState::Checkpointed, ProcessState::Locked);
}

Result cuCheckpointProcessUnlock(int pid, UnlockArgs*) {
  return move("unlock", pid, ProcessState::Locked, ProcessState::Running);
}

Result cuCheckpointProcessGetState(int pid, ProcessState* state) {
  if (std::optional<Reply> reply = scripted("state")) {
    reply->during();
    if (reply->becomes) *state = static_cast<ProcessState>(*reply->becomes);
    return reply->result;
  }
  std::lock_guard lock(script().mutex);
  auto it = script().states.find(pid);
  if (it == script().states.end()) return Result::NotInitialized;
  *state = static_cast<ProcessState>(it->second);
  return Result::Success;
}

Result cuCheckpointProcessGetRestoreThreadId(int pid, int* tid) {
  std::lock_guard lock(script().mutex);
  *tid = pid;
  // A driver that calls everybody running (scripted as state 0 of a process that is not listed).
  return script().states.contains(pid) ? Result::Success : Result::NotInitialized;
}

#endif

}  // extern "C"
