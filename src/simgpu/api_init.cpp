#include <unistd.h>

#include <cstdio>

#include "simgpu/api.h"

namespace simgpu {

void GatedCall::trace(CUresult result) {
  char line[128];
  std::snprintf(line, sizeof line, "call %s pid=%d code=%d", name_, ::getpid(), result);
  driver_.host.trace(line);
}

SIMGPU_API CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return guarded([] { return Driver::init(); });
}

SIMGPU_API CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Host* host = sharedHost();
  *version = host == nullptr ? kDriverVersion : host->card(0).settings()->cudaVersion;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuProfilerStart() {
  return CUDA_SUCCESS;
}
SIMGPU_API CUresult cuProfilerStop() {
  return CUDA_SUCCESS;
}

}  // namespace simgpu
