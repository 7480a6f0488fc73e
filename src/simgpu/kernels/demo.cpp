// The demo's kernels on the CPU, thread after thread; see demo_kernels.h.
#include "simgpu/kernels/demo_kernels.h"
#include "simgpu/kernels/tables.h"

namespace simgpu {
namespace {

template <class Args, void (*body)(const Args&, std::uint32_t)>
void run(const Launch& launch) {
  const Args& args = *static_cast<const Args*>(launch.params[0]);
  for (std::uint32_t thread = 0; thread < args.extent.threads; ++thread) body(args, thread);
}

std::uint64_t atLeastNs(const Launch& launch) {
  return static_cast<const demo::Extent*>(launch.params[0])->atLeastNs;
}

template <class Args, void (*body)(const Args&, std::uint32_t)>
constexpr NamedKernel kernel(std::string_view name) {
  return {name, run<Args, body>, atLeastNs, paramBytes<Args>()};
}

constexpr NamedKernel kKernels[] = {
    kernel<demo::InitArgs, demo::initThread>("demo_init"),
    kernel<demo::SampleArgs, demo::sampleThread>("demo_sample"),
    kernel<demo::ScoreArgs, demo::scoreThread>("demo_score"),
    kernel<demo::AdvantageArgs, demo::advantageThread>("demo_advantage"),
    kernel<demo::GradientArgs, demo::gradientThread>("demo_gradient"),
    kernel<demo::ReduceArgs, demo::reduceThread>("demo_reduce"),
    kernel<demo::AdamArgs, demo::adamThread>("demo_adam"),
    kernel<demo::BallastArgs, demo::ballastThread>("demo_ballast"),
    kernel<demo::DigestArgs, demo::digestThread>("demo_digest"),
};

}  // namespace

std::span<const NamedKernel> demoKernels() {
  return kKernels;
}

}  // namespace simgpu
