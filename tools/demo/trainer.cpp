#include "trainer.h"

#include <bit>
#include <cmath>

namespace demo {
namespace {

constexpr float kRate = 0.02f;
constexpr float kClip = 0.2f;
constexpr float kPull = 0.003f;
constexpr std::uint64_t kHeldOutSeed = 0x5eed;  // the same exam in every run

enum Use : std::uint64_t { kWeightsUse = 1, kProblemsUse, kSampleUse, kExamUse, kBallastUse };

std::uint64_t hash(std::span<const float> values) {
  std::uint64_t sum = 0;
  for (float value : values) sum = mix(sum, std::bit_cast<std::uint32_t>(value));
  return sum;
}

Extent threads(std::uint32_t count, std::uint64_t atLeastNs = 0) {
  return {atLeastNs, count, 0};
}

}  // namespace

Trainer::Trainer(Device& device, Peers& peers, const TrainerOptions& options)
    : device_(device),
      peers_(peers),
      options_(options),
      clockwork_(options.timeScale),
      weights_(device.make<float>(kWeights)),
      reference_(device.make<float>(kWeights)),
      gradient_(device.make<float>(kWeights)),
      adamMean_(device.make<float>(kWeights)),
      adamVariance_(device.make<float>(kWeights)),
      partial_(device.make<float>(std::size_t{kRows} * kWeights)),
      problems_(device.make<Problem>(kProblems)),
      heldOutProblems_(device.make<Problem>(kHeldOut)),
      answers_(device.make<std::uint8_t>(kRollouts * kDigits)),
      heldOutAnswers_(device.make<std::uint8_t>(kHeldOut * kDigits)),
      sampledLogp_(device.make<float>(kRollouts * kDigits)),
      referenceLogp_(device.make<float>(kRollouts * kDigits)),
      heldOutLogp_(device.make<float>(kHeldOut * kDigits)),
      rewards_(device.make<float>(kRollouts)),
      advantages_(device.make<float>(kRollouts)),
      ballast_(device.make<std::uint64_t>(options.ballastBytes / 8)),
      digest_(device) {
  heldOutAsked_ = heldOutProblems(mix(kHeldOutSeed, peers_.rank()), kHeldOut);
  device_.write(heldOutProblems_, std::span<const Problem>(heldOutAsked_));
  const std::uint64_t seed = mix(options_.seed, kWeightsUse);
  for (float* weights : {weights_.data, reference_.data}) {
    device_.run("demo_init", InitArgs{threads(kWeights), weights, seed});
  }
  stir(seedOf(0, kBallastUse), 0);
  device_.finish();
}

// Different in every step, rank and use, and the same in every run.
std::uint64_t Trainer::seedOf(unsigned step, std::uint64_t use) const {
  return mix(mix(options_.seed, use), step * std::uint64_t{peers_.world()} + peers_.rank());
}

void Trainer::sample(unsigned step) {
  asked_ = trainingProblems(seedOf(step, kProblemsUse), kProblems);
  device_.write(problems_, std::span<const Problem>(asked_));
  const Row& row = clockwork_.row();
  const double exam = row.generate * kHeldOut / (kRollouts + kHeldOut);
  answer(problems_, answers_, sampledLogp_, kGroup, seedOf(step, kSampleUse), row.generate - exam);
  answer(heldOutProblems_, heldOutAnswers_, heldOutLogp_, 1, seedOf(step, kExamUse), exam);
  device_.run("demo_score", ScoreArgs{.extent = threads(kRollouts, ns(row.reference)),
                                      .weights = reference_.data,
                                      .problems = problems_.data,
                                      .answers = answers_.data,
                                      .logp = referenceLogp_.data,
                                      .group = kGroup});
  device_.finish();
  given_ = device_.read(answers_);
  heldOutGiven_ = device_.read(heldOutAnswers_);
}

void Trainer::answer(Array<Problem> problems, Array<std::uint8_t> answers, Array<float> logp,
                     std::uint32_t group, std::uint64_t seed, double seconds) {
  const auto rollouts = static_cast<std::uint32_t>(problems.count) * group;
  device_.run("demo_sample", SampleArgs{.extent = threads(rollouts, ns(seconds)),
                                        .weights = weights_.data,
                                        .problems = problems.data,
                                        .answers = answers.data,
                                        .logp = logp.data,
                                        .seed = seed,
                                        .group = group});
}

void Trainer::reward() {
  judged_ = verifyAll(options_.task, asked_, given_, kGroup);
  heldOutScore_ = mean(verifyAll(options_.task, heldOutAsked_, heldOutGiven_, 1));
}

Scores Trainer::train(unsigned step) {
  const Row& row = clockwork_.row();
  digest_.absorbMemory(ns(row.values * 0.6));
  device_.write(rewards_, std::span<const float>(judged_));
  device_.run("demo_advantage", AdvantageArgs{.extent = threads(kProblems, ns(row.values * 0.05)),
                                              .rewards = rewards_.data,
                                              .advantages = advantages_.data,
                                              .group = kGroup});
  for (std::uint32_t k = 0; k < kEpochs * kMinibatches; ++k) update(k % kMinibatches);
  // The gradient holds what every rank has learned, so from here on the ballast does, too.
  stir(mix(hash(averaged_), seedOf(step + 1, kBallastUse)), ns(row.values * 0.35));
  device_.finish();
  digest_.absorb(hash(judged_));
  return share(mean(judged_), heldOutScore_);
}

void Trainer::update(std::uint32_t minibatch) {
  const Row& row = clockwork_.row();
  const double seconds = (row.critic + row.actor) / (kEpochs * kMinibatches);
  gradient(minibatch, seconds * 0.9);
  average();
  const auto done = static_cast<float>(++updates_);
  device_.run("demo_adam", AdamArgs{.extent = threads(kWeights, ns(seconds * 0.1)),
                                    .weights = weights_.data,
                                    .mean = adamMean_.data,
                                    .variance = adamVariance_.data,
                                    .gradient = gradient_.data,
                                    .rate = options_.update ? kRate : 0,
                                    .meanLeft = 1 - std::pow(0.9f, done),
                                    .varianceLeft = 1 - std::pow(0.99f, done)});
}

void Trainer::gradient(std::uint32_t minibatch, double seconds) {
  constexpr std::uint32_t kSize = kRollouts / kMinibatches;
  const float digits = static_cast<float>(kSize) * kDigits * static_cast<float>(peers_.world());
  device_.run("demo_gradient", GradientArgs{.extent = threads(kRows, ns(seconds * 0.9)),
                                            .weights = weights_.data,
                                            .problems = problems_.data,
                                            .answers = answers_.data,
                                            .oldLogp = sampledLogp_.data,
                                            .referenceLogp = referenceLogp_.data,
                                            .advantages = advantages_.data,
                                            .partial = partial_.data,
                                            .first = minibatch * kSize,
                                            .each = kSize / kRows,
                                            .group = kGroup,
                                            .clip = kClip,
                                            .pull = kPull,
                                            .scale = 1 / digits});
  device_.run("demo_reduce", ReduceArgs{.extent = threads(kWeights, ns(seconds * 0.1)),
                                        .partial = partial_.data,
                                        .gradient = gradient_.data,
                                        .rows = kRows});
  device_.finish();
}

void Trainer::average() {
  averaged_ = device_.read(gradient_);
  peers_.sum(averaged_);
  device_.write(gradient_, std::span<const float>(averaged_));
}

void Trainer::stir(std::uint64_t salt, std::uint64_t atLeastNs) {
  if (ballast_.count == 0) return;
  device_.run("demo_ballast",
              BallastArgs{.extent = threads(regionThreads(ballast_.count), atLeastNs),
                          .words = ballast_.data,
                          .count = ballast_.count,
                          .salt = salt});
}

Scores Trainer::share(double reward, double heldOut) {
  float sums[] = {static_cast<float>(reward), static_cast<float>(heldOut)};
  peers_.sum(sums);
  return {sums[0] / static_cast<double>(peers_.world()),
          sums[1] / static_cast<double>(peers_.world())};
}

std::uint64_t Trainer::digest() {
  digest_.absorbMemory(0);
  digest_.absorb(hash(device_.read(weights_)));
  std::uint64_t all = 0;
  for (std::uint64_t rank : peers_.gather(digest_.value())) all = mix(all, rank);
  return all;
}

}  // namespace demo
