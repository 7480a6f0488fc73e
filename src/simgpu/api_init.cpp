#include <unistd.h>

#include <cstdio>

#include "simgpu/api.h"

namespace simgpu {

void GatedCall::trace(const char* when, const std::string& end) {
  char line[160];
  std::snprintf(line, sizeof line, "%s %s pid=%d caller=%d%s", when, name_, ::getpid(), ::getpid(),
                end.c_str());
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
