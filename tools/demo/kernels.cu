// The demo's kernels for a real GPU: each thread does what simgpu/kernels/demo_kernels.h says.
#include "simgpu/kernels/demo_kernels.h"

namespace {

__device__ std::uint64_t now() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// A modelled phase: one thread keeps the launch on the device until its time is over.
template <class Args, class Body>
__device__ void run(const Args& args, Body body) {
  const std::uint64_t start = now();
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread < args.extent.threads) body(args, thread);
  if (thread == 0) {
    while (now() - start < args.extent.atLeastNs) {
    }
  }
}

}  // namespace

#define DEMO_KERNEL(name, Args, body)                \
  extern "C" __global__ void name(demo::Args args) { \
    run(args, demo::body);                           \
  }

DEMO_KERNEL(demo_init, InitArgs, initThread)
DEMO_KERNEL(demo_sample, SampleArgs, sampleThread)
DEMO_KERNEL(demo_score, ScoreArgs, scoreThread)
DEMO_KERNEL(demo_advantage, AdvantageArgs, advantageThread)
DEMO_KERNEL(demo_gradient, GradientArgs, gradientThread)
DEMO_KERNEL(demo_reduce, ReduceArgs, reduceThread)
DEMO_KERNEL(demo_adam, AdamArgs, adamThread)
DEMO_KERNEL(demo_ballast, BallastArgs, ballastThread)
DEMO_KERNEL(demo_digest, DigestArgs, digestThread)
