// libcuda.so.1, loaded at run time: the checkpoint entry points, and why they cannot be used if so.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda_abi.h"

namespace ts::cuda {

struct DriverPlaces {
  std::string library = "libcuda.so.1";
  std::string kernelModule = "/proc/driver/nvidia/version";
};

// Made once and never changed, so any thread may use it. The library is never unloaded: its threads
// and a call that hangs in it would not survive that.
struct Driver {
  std::string error;         // why it cannot be used, and what to do; empty: it can
  std::string kernelModule;  // "570.86.15"; empty: not known
  int version = 0;           // as cuDriverGetVersion says: 12080 is CUDA 12.8

  Result (*init)(unsigned int) = nullptr;
  Result (*driverGetVersion)(int*) = nullptr;
  Result (*getErrorName)(Result, const char**) = nullptr;
  Result (*lock)(int pid, LockArgs*) = nullptr;
  Result (*checkpoint)(int pid, CheckpointArgs*) = nullptr;
  Result (*restore)(int pid, RestoreArgs*) = nullptr;
  Result (*unlock)(int pid, UnlockArgs*) = nullptr;
  Result (*getState)(int pid, ProcessState*) = nullptr;
  Result (*getRestoreThreadId)(int pid, int* tid) = nullptr;  // may be missing

  bool usable() const { return error.empty(); }
  std::string nameOf(Result result) const;  // "CUDA_ERROR_NOT_READY (600)"
  std::string versionText() const;          // "driver 570.86.15 (CUDA 12.8)"
};

// Loads and initialises. A restore needs an initialised caller (or persistence mode).
std::shared_ptr<const Driver> openDriver(const DriverPlaces& places = {});

}  // namespace ts::cuda
