// One rank of a GRPO training: sample answers, have them judged, learn from the judgement.
#pragma once

#include <cstdint>
#include <vector>

#include "device.h"
#include "digest.h"
#include "peers.h"
#include "problems.h"
#include "workload.h"

namespace demo {

struct TrainerOptions {
  Task task = Task::Add;
  std::uint64_t seed = 1;
  std::uint64_t ballastBytes = 0;
  double timeScale = 0;
  bool update = true;  // false: everything happens, at a learning rate of 0
};

struct Scores {
  double reward = 0;   // of the answers trained on, over all ranks
  double heldOut = 0;  // of problems never trained on
};

// The phases of step k are sample(k), reward(k) and train(k), in this order. sample() and train()
// touch the device; reward() does not, and leaves nothing running there.
class Trainer {
public:
  Trainer(Device& device, Peers& peers, const TrainerOptions& options);

  void sample(unsigned step);
  void reward();
  Scores train(unsigned step);
  // Of all device memory at every turn, weights and rewards, over both ranks: the same on each of
  // them.
  std::uint64_t digest();

  // The shape of a step. A minibatch is whole groups.
  static constexpr std::uint32_t kProblems = 128;
  static constexpr std::uint32_t kGroup = 16;
  static constexpr std::uint32_t kRollouts = kProblems * kGroup;
  static constexpr std::uint32_t kHeldOut = 256;
  static constexpr std::uint32_t kMinibatches = 8;
  static constexpr std::uint32_t kEpochs = 4;
  static constexpr std::uint32_t kRows = 32;  // partial gradients, each summed by one thread

private:
  std::uint64_t seedOf(unsigned step, std::uint64_t use) const;
  std::uint64_t ns(double seconds) const { return clockwork_.ns(seconds); }
  void answer(Array<Problem> problems, Array<std::uint8_t> answers, Array<float> logp,
              std::uint32_t group, std::uint64_t seed, double seconds);
  void update(std::uint32_t minibatch);
  void gradient(std::uint32_t minibatch, double seconds);
  void average();
  void stir(std::uint64_t salt, std::uint64_t atLeastNs);
  Scores share(double reward, double heldOut);

  Device& device_;
  Peers& peers_;
  TrainerOptions options_;
  Clockwork clockwork_;

  Array<float> weights_, reference_, gradient_, adamMean_, adamVariance_, partial_;
  Array<Problem> problems_, heldOutProblems_;
  Array<std::uint8_t> answers_, heldOutAnswers_;
  Array<float> sampledLogp_, referenceLogp_, heldOutLogp_, rewards_, advantages_;
  Array<std::uint64_t> ballast_;
  Digest digest_;

  // What the verifier works on, in host memory.
  std::vector<Problem> asked_, heldOutAsked_;
  std::vector<std::uint8_t> given_, heldOutGiven_;
  std::vector<float> judged_;
  double heldOutScore_ = 0;
  std::vector<float> averaged_;
  std::uint32_t updates_ = 0;
};

}  // namespace demo
