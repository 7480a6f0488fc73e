// How long the phases of a step take: measured on a real training job, scaled by one factor.
#pragma once

#include <cstdint>

namespace demo {

// One step of PPO on GSM8K with a 0.5B model on one H100, in seconds, and a reward of sandboxed
// code. GRPO has no critic: the time of the critic's forward and backward pass is spent by the
// kernels that are named at each member.
struct Row {
  double generate = 17.9;  // rollouts: demo_sample
  double reference = 5.4;  // log-probabilities under the reference: demo_score
  double values = 5.7;     // demo_digest, demo_advantage, demo_ballast (none without ballast)
  double critic = 16.5;    // demo_gradient, demo_reduce, demo_adam; with the actor
  double actor = 20.8;
  double reward = 77;          // 64 code samples in sandboxes; no GPU
  double rewardSpread = 0.05;  // of the reward, to either side, drawn from the seed

  double sampler() const { return generate + reference; }
  double trainer() const { return values + critic + actor; }
};

class Clockwork {  // turns seconds of the row into nanoseconds of this run
public:
  explicit Clockwork(double scale) : scale_(scale) {}
  std::uint64_t ns(double seconds) const {
    return static_cast<std::uint64_t>(seconds * scale_ * 1e9);
  }
  const Row& row() const { return row_; }

private:
  Row row_;
  double scale_;
};

}  // namespace demo
