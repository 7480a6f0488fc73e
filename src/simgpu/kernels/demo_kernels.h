// The demo's kernels, each as what one device thread does, and the arguments they are launched
// with.
#pragma once

#include "simgpu/kernels/demo_policy.h"

namespace demo {

// Every kernel takes one struct and starts it with this.
struct Extent {
  std::uint64_t atLeastNs;  // the launch keeps the device busy at least so long: a modelled phase
  std::uint32_t threads;
  std::uint32_t unused;
};

struct InitArgs {
  Extent extent;
  float* weights;
  std::uint64_t seed;
};

DEMO_FN void initThread(const InitArgs& args, std::uint32_t i) {
  const float spread = i < kHiddenBias ? 0.25f : 0.1f;
  const bool bias = (i >= kHiddenBias && i < kOutput) || i >= kOutputBias;
  args.weights[i] = bias ? 0 : spread * (2 * uniform(mix(args.seed, i)) - 1);
}

// One answer of the policy: a rollout.
struct SampleArgs {
  Extent extent;
  const float* weights;
  const Problem* problems;
  std::uint8_t* answers;  // kDigits each
  float* logp;            // of each digit as it was sampled
  std::uint64_t seed;
  std::uint32_t group;  // rollouts per problem
  std::uint32_t unused;
};

DEMO_FN void sampleThread(const SampleArgs& args, std::uint32_t rollout) {
  const Problem problem = args.problems[rollout / args.group];
  std::uint8_t* answer = args.answers + rollout * kDigits;
  for (int column = 0; column < kDigits; ++column) {
    Forward out;
    forward(args.weights, lamps(problem, answer, column), out);
    const std::uint32_t at = rollout * kDigits + static_cast<std::uint32_t>(column);
    const int digit = sampleDigit(out.logp, uniform(mix(args.seed, at)));
    answer[column] = static_cast<std::uint8_t>(digit);
    args.logp[at] = out.logp[digit];
  }
}

// What other weights think of the same answers.
struct ScoreArgs {
  Extent extent;
  const float* weights;
  const Problem* problems;
  const std::uint8_t* answers;
  float* logp;
  std::uint32_t group;
  std::uint32_t unused;
};

DEMO_FN void scoreThread(const ScoreArgs& args, std::uint32_t rollout) {
  const Problem problem = args.problems[rollout / args.group];
  const std::uint8_t* answer = args.answers + rollout * kDigits;
  for (int column = 0; column < kDigits; ++column) {
    Forward out;
    forward(args.weights, lamps(problem, answer, column), out);
    args.logp[rollout * kDigits + static_cast<std::uint32_t>(column)] = out.logp[answer[column]];
  }
}

// GRPO's baseline: a rollout is judged against the others of its problem.
struct AdvantageArgs {
  Extent extent;
  const float* rewards;
  float* advantages;
  std::uint32_t group;
  std::uint32_t unused;
};

DEMO_FN void advantageThread(const AdvantageArgs& args, std::uint32_t problem) {
  const float* reward = args.rewards + problem * args.group;
  float* advantage = args.advantages + problem * args.group;
  float mean = 0;
  for (std::uint32_t k = 0; k < args.group; ++k) mean += reward[k];
  mean /= static_cast<float>(args.group);
  float variance = 0;
  for (std::uint32_t k = 0; k < args.group; ++k) {
    variance += (reward[k] - mean) * (reward[k] - mean);
  }
  const float deviation = sqrtf(variance / static_cast<float>(args.group));
  for (std::uint32_t k = 0; k < args.group; ++k) {
    advantage[k] = (reward[k] - mean) / (deviation + 1e-4f);
  }
}

// Each thread sums the gradient of its own rollouts into its own row of `partial`, in their order,
// so the sum does not depend on who is scheduled first.
struct GradientArgs {
  Extent extent;
  const float* weights;
  const Problem* problems;
  const std::uint8_t* answers;
  const float* oldLogp;        // when sampled
  const float* referenceLogp;  // under the frozen reference
  const float* advantages;
  float* partial;       // threads x kWeights
  std::uint32_t first;  // rollout
  std::uint32_t each;   // rollouts per thread
  std::uint32_t group;
  float clip;   // of the importance ratio
  float pull;   // towards the reference
  float scale;  // 1 / digits in the minibatch, of all ranks
};

// How much the loss falls per unit of log-probability: GRPO's clipped objective and its KL term.
DEMO_FN float pushOf(const GradientArgs& args, float logp, std::uint32_t rollout,
                     std::uint32_t at) {
  const float ratio = expf(logp - args.oldLogp[at]);
  const float advantage = args.advantages[rollout];
  const bool clipped = advantage > 0 ? ratio > 1 + args.clip : ratio < 1 - args.clip;
  const float apart = args.referenceLogp[at] - logp;
  const float kl = 1 - expf(apart < 2 ? apart : 2);  // bounded: a rare digit must not rule the step
  return ((clipped ? 0 : ratio * advantage) - args.pull * kl) * args.scale;
}

DEMO_FN void backward(const float* weights, const Lit& lit, const Forward& out, int digit,
                      float push, float* gradient) {
  float slope[kBase];
  for (int c = 0; c < kBase; ++c)
    slope[c] = push * ((c == digit ? 1.0f : 0.0f) - expf(out.logp[c]));
  for (int c = 0; c < kBase; ++c) gradient[kOutputBias + c] += slope[c];
  float back[kHidden];
  for (int h = 0; h < kHidden; ++h) {
    const float* row = weights + kOutput + h * kBase;
    float* into = gradient + kOutput + h * kBase;
    float sum = 0;
    for (int c = 0; c < kBase; ++c) {
      sum += row[c] * slope[c];
      into[c] += out.hidden[h] * slope[c];
    }
    back[h] = out.hidden[h] > 0 ? sum : 0;
    gradient[kHiddenBias + h] += back[h];
  }
  for (int k = 0; k < lit.count; ++k) {
    float* row = gradient + lit.rows[k] * kHidden;
    for (int h = 0; h < kHidden; ++h) row[h] += back[h];
  }
}

DEMO_FN void gradientThread(const GradientArgs& args, std::uint32_t thread) {
  float* gradient = args.partial + static_cast<std::uint64_t>(thread) * kWeights;
  for (int i = 0; i < kWeights; ++i) gradient[i] = 0;
  for (std::uint32_t k = 0; k < args.each; ++k) {
    const std::uint32_t rollout = args.first + thread * args.each + k;
    const Problem problem = args.problems[rollout / args.group];
    const std::uint8_t* answer = args.answers + rollout * kDigits;
    for (int column = 0; column < kDigits; ++column) {
      const std::uint32_t at = rollout * kDigits + static_cast<std::uint32_t>(column);
      const Lit lit = lamps(problem, answer, column);
      Forward out;
      forward(args.weights, lit, out);
      const float push = pushOf(args, out.logp[answer[column]], rollout, at);
      backward(args.weights, lit, out, answer[column], push, gradient);
    }
  }
}

struct ReduceArgs {
  Extent extent;
  const float* partial;
  float* gradient;
  std::uint32_t rows;
  std::uint32_t unused;
};

DEMO_FN void reduceThread(const ReduceArgs& args, std::uint32_t i) {
  float sum = 0;
  for (std::uint32_t row = 0; row < args.rows; ++row) {
    sum += args.partial[static_cast<std::uint64_t>(row) * kWeights + i];
  }
  args.gradient[i] = sum;
}

struct AdamArgs {
  Extent extent;
  float* weights;
  float* mean;
  float* variance;
  const float* gradient;  // the way up
  float rate;
  float meanLeft;      // 1 - beta1^t
  float varianceLeft;  // 1 - beta2^t
  std::uint32_t unused;
};

DEMO_FN void adamThread(const AdamArgs& args, std::uint32_t i) {
  const float g = args.gradient[i];
  args.mean[i] = 0.9f * args.mean[i] + 0.1f * g;
  args.variance[i] = 0.99f * args.variance[i] + 0.01f * g * g;
  const float mean = args.mean[i] / args.meanLeft;
  const float variance = args.variance[i] / args.varianceLeft;
  args.weights[i] += args.rate * mean / (sqrtf(variance) + 1e-8f);
}

// Large arrays are cut into regions that 32 threads walk side by side: the accesses of a warp are
// neighbours on a GPU, and a region stays in the cache of a CPU.
inline constexpr std::uint64_t kRegionWords = 2048;
inline constexpr std::uint32_t kLanes = 32;

DEMO_FN std::uint64_t regionEnd(std::uint32_t thread, std::uint64_t words) {
  const std::uint64_t end = (thread / kLanes + 1) * kRegionWords;
  return end < words ? end : words;
}
DEMO_FN std::uint64_t regionStart(std::uint32_t thread) {
  return thread / kLanes * kRegionWords + thread % kLanes;
}
DEMO_FN std::uint32_t regionThreads(std::uint64_t words) {
  return static_cast<std::uint32_t>((words + kRegionWords - 1) / kRegionWords) * kLanes;
}

// Ballast: memory that a larger model would fill. Each step makes every word of it from its old
// value and a salt, one to one, so that a byte that is ever wrong stays wrong.
struct BallastArgs {
  Extent extent;
  std::uint64_t* words;
  std::uint64_t count;
  std::uint64_t salt;
};

DEMO_FN void ballastThread(const BallastArgs& args, std::uint32_t thread) {
  const std::uint64_t end = regionEnd(thread, args.count);
  for (std::uint64_t i = regionStart(thread); i < end; i += kLanes) {
    std::uint64_t x = args.words[i] ^ (args.salt + i);
    x *= 0x9e3779b97f4a7c15u;
    args.words[i] = x ^ (x >> 32);
  }
}

// A sum of one-to-one images of (place, word): the order of the threads does not matter, and a
// change of any single word changes it.
struct DigestArgs {
  Extent extent;
  const std::uint64_t* words;
  std::uint64_t count;
  std::uint64_t salt;
  std::uint64_t* sum;
};

DEMO_FN void addTo(std::uint64_t* sum, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
#else
  *sum += value;
#endif
}

DEMO_FN void digestThread(const DigestArgs& args, std::uint32_t thread) {
  const std::uint64_t end = regionEnd(thread, args.count);
  std::uint64_t sum = 0;
  for (std::uint64_t i = regionStart(thread); i < end; i += kLanes) {
    std::uint64_t x = args.words[i] ^ ((args.salt + i) * 0xd1342543de82ef95u);
    x *= 0x9e3779b97f4a7c15u;
    sum += x ^ (x >> 32);
  }
  addTo(args.sum, sum);
}

}  // namespace demo
