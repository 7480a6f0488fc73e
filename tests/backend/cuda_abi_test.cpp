// Our declarations of the driver's interface against NVIDIA's. Built where a toolkit >= 12.8 is
// found.
#include "backend/cuda_abi.h"

#include <cuda.h>

#include <catch2/catch.hpp>
#include <cstddef>

#include "backend/cuda_driver.h"

using namespace ts::cuda;

// Our function pointers and theirs must take the same things, up to our names for them.
static_assert(sizeof(Result) == sizeof(CUresult) && sizeof(ProcessState) == sizeof(CUprocessState));

static_assert(sizeof(LockArgs) == sizeof(CUcheckpointLockArgs));
static_assert(offsetof(LockArgs, timeoutMs) == offsetof(CUcheckpointLockArgs, timeoutMs));
static_assert(offsetof(LockArgs, reserved1) == offsetof(CUcheckpointLockArgs, reserved1));
static_assert(sizeof(CheckpointArgs) == sizeof(CUcheckpointCheckpointArgs));
static_assert(sizeof(RestoreArgs) == sizeof(CUcheckpointRestoreArgs));
static_assert(sizeof(UnlockArgs) == sizeof(CUcheckpointUnlockArgs));

static_assert(int(Result::Success) == CUDA_SUCCESS);
static_assert(int(Result::InvalidValue) == CUDA_ERROR_INVALID_VALUE);
static_assert(int(Result::OutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(int(Result::NotInitialized) == CUDA_ERROR_NOT_INITIALIZED);
static_assert(int(Result::OperatingSystem) == CUDA_ERROR_OPERATING_SYSTEM);
static_assert(int(Result::IllegalState) == CUDA_ERROR_ILLEGAL_STATE);
static_assert(int(Result::NotReady) == CUDA_ERROR_NOT_READY);
static_assert(int(Result::NotPermitted) == CUDA_ERROR_NOT_PERMITTED);
static_assert(int(Result::NotSupported) == CUDA_ERROR_NOT_SUPPORTED);

static_assert(int(ProcessState::Running) == CU_PROCESS_STATE_RUNNING);
static_assert(int(ProcessState::Locked) == CU_PROCESS_STATE_LOCKED);
static_assert(int(ProcessState::Checkpointed) == CU_PROCESS_STATE_CHECKPOINTED);
static_assert(int(ProcessState::Failed) == CU_PROCESS_STATE_FAILED);

static_assert(
    std::is_same_v<decltype(&cuCheckpointProcessLock), CUresult (*)(int, CUcheckpointLockArgs*)>);
static_assert(std::is_same_v<decltype(&cuCheckpointProcessCheckpoint),
                             CUresult (*)(int, CUcheckpointCheckpointArgs*)>);
static_assert(std::is_same_v<decltype(&cuCheckpointProcessRestore),
                             CUresult (*)(int, CUcheckpointRestoreArgs*)>);
static_assert(std::is_same_v<decltype(&cuCheckpointProcessUnlock),
                             CUresult (*)(int, CUcheckpointUnlockArgs*)>);
static_assert(
    std::is_same_v<decltype(&cuCheckpointProcessGetState), CUresult (*)(int, CUprocessState*)>);
static_assert(
    std::is_same_v<decltype(&cuCheckpointProcessGetRestoreThreadId), CUresult (*)(int, int*)>);

TEST_CASE("our declarations of the checkpoint API agree with the toolkit's cuda.h", "[backend]") {
  INFO("cuda.h of CUDA " << CUDA_VERSION);
  SUCCEED("checked by the compiler");
}
