#include <catch2/catch.hpp>

#include "simgpu/cuda_abi.h"
#include "simgpu/nvml_abi.h"

#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#if CUDA_VERSION >= 12080
#define SIMGPU_HAS_CUDA_H
#endif
#endif

#ifdef SIMGPU_HAS_CUDA_H
#define SAME_SIZE(type) static_assert(sizeof(simgpu::type) == sizeof(::type))
#define SAME_VALUE(name) static_assert(static_cast<int>(simgpu::name) == static_cast<int>(::name))
#define SAME_PLACE(type, field) \
  static_assert(offsetof(simgpu::type, field) == offsetof(::type, field))
SAME_SIZE(CUcheckpointLockArgs);
SAME_SIZE(CUcheckpointCheckpointArgs);
SAME_SIZE(CUcheckpointRestoreArgs);
SAME_SIZE(CUcheckpointUnlockArgs);
SAME_SIZE(CUcheckpointGpuPair);
SAME_SIZE(CUmemAllocationProp);
SAME_SIZE(CUmemAccessDesc);
SAME_SIZE(CUlaunchConfig);
SAME_SIZE(CUuuid);
SAME_PLACE(CUcheckpointLockArgs, timeoutMs);
SAME_PLACE(CUcheckpointRestoreArgs, gpuPairsCount);
SAME_PLACE(CUmemAllocationProp, location);
SAME_PLACE(CUmemAccessDesc, flags);
SAME_PLACE(CUlaunchConfig, hStream);
SAME_VALUE(CU_PROCESS_STATE_RUNNING);
SAME_VALUE(CU_PROCESS_STATE_LOCKED);
SAME_VALUE(CU_PROCESS_STATE_CHECKPOINTED);
SAME_VALUE(CU_PROCESS_STATE_FAILED);
SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(CUDA_ERROR_NO_DEVICE);
SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(CUDA_ERROR_OPERATING_SYSTEM);
SAME_VALUE(CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(CUDA_ERROR_ILLEGAL_STATE);
SAME_VALUE(CUDA_ERROR_NOT_FOUND);
SAME_VALUE(CUDA_ERROR_NOT_READY);
SAME_VALUE(CUDA_ERROR_NOT_PERMITTED);
SAME_VALUE(CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_VALUE(CU_POINTER_ATTRIBUTE_MAPPED);
#endif

TEST_CASE("our declarations of the driver's and NVML's structs have the sizes of theirs",
          "[simgpu]") {
  CHECK(sizeof(simgpu::CUcheckpointLockArgs) == 64);
  CHECK(sizeof(simgpu::CUcheckpointRestoreArgs) == 64);
  CHECK(sizeof(simgpu::CUmemAllocationProp) == 32);
  CHECK(sizeof(simgpu::nvmlPciInfo_t) == 68);
  CHECK(sizeof(simgpu::nvmlProcessInfo_t) == 24);
  CHECK(sizeof(simgpu::nvmlMemory_v2_t) == 40);
}
