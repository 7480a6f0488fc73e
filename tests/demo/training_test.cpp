#include "trainer.h"

#include <catch2/catch.hpp>
#include <functional>

#include "host_device.h"
#include "ranks.h"

using namespace demo;

namespace {

struct Run {
  double first = 0;  // held-out score of the first step and of the last
  double last = 0;
  std::uint64_t digest = 0;
};

// Called where the job would yield, before it trains.
using AtYield = std::function<void(HostDevice&, unsigned step)>;

Run train(Peers& peers, const TrainerOptions& options, unsigned steps,
          const AtYield& atYield = {}) {
  HostDevice device;
  Trainer trainer(device, peers, options);
  Run run;
  for (unsigned step = 0; step < steps; ++step) {
    trainer.sample(step);
    trainer.reward();
    if (atYield) atYield(device, step);
    const Scores scores = trainer.train(step);
    if (step == 0) run.first = scores.heldOut;
    run.last = scores.heldOut;
  }
  run.digest = trainer.digest();
  return run;
}

Run trainAlone(const TrainerOptions& options, unsigned steps, const AtYield& atYield = {}) {
  Peers alone(Meeting{});
  return train(alone, options, steps, atYield);
}

std::vector<Run> trainTogether(const TrainerOptions& options, unsigned steps,
                               const std::function<AtYield(unsigned rank)>& atYield = {}) {
  std::vector<Run> runs(2);
  asRanks(2, [&](Peers& peers) {
    runs[peers.rank()] = train(peers, options, steps, atYield ? atYield(peers.rank()) : AtYield{});
  });
  return runs;
}

TrainerOptions small(Task task = Task::Add, std::uint64_t seed = 1) {
  return {.task = task, .seed = seed, .ballastBytes = 40960 + 24};
}

}  // namespace

TEST_CASE("two ranks learn to add and to subtract from rewards alone", "[demo]") {
  for (Task task : {Task::Add, Task::Subtract}) {
    const std::vector<Run> ranks = trainTogether(small(task), 16);
    CHECK(ranks[0].first == Approx(kChance).margin(0.05));
    CHECK(ranks[0].last > 3 * kChance);
    CHECK(ranks[0].last == ranks[1].last);
  }
}

TEST_CASE("without updates the score stays at chance", "[demo]") {
  TrainerOptions options = small();
  options.update = false;
  const std::vector<Run> ranks = trainTogether(options, 8);
  CHECK(ranks[0].last == Approx(kChance).margin(0.05));
}

TEST_CASE("the same seed gives the same digest on both ranks, every time", "[demo]") {
  const std::vector<Run> once = trainTogether(small(), 2);
  const std::vector<Run> again = trainTogether(small(), 2);
  CHECK(once[0].digest == once[1].digest);
  CHECK(once[0].digest == again[0].digest);
  CHECK(trainTogether(small(Task::Add, 2), 2)[0].digest != once[0].digest);
}

TEST_CASE("a flipped bit in any block of a snapshot changes the digest", "[demo]") {
  const std::uint64_t right = trainAlone(small(), 2).digest;
  HostDevice shape;
  Peers alone(Meeting{});
  const Trainer trainer(shape, alone, small());
  for (std::size_t block = 0; block < shape.blocks().size(); ++block) {
    const std::uint64_t bytes = shape.blocks()[block].count * 8;
    for (std::uint64_t byte : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
      const Run run = trainAlone(small(), 2, [&](HostDevice& device, unsigned step) {
        if (step == 1) device.spoil(block, byte);
      });
      INFO("block " << block << " byte " << byte);
      CHECK(run.digest != right);
    }
  }
}

TEST_CASE("a flipped bit at one rank changes the digest of the other", "[demo]") {
  const std::vector<Run> right = trainTogether(small(), 2);
  const auto spoilRank1 = [](unsigned rank) -> AtYield {
    if (rank == 0) return {};
    return [](HostDevice& device, unsigned step) {
      if (step == 0) device.spoil(0, 100);  // a weight
    };
  };
  const std::vector<Run> wrong = trainTogether(small(), 2, spoilRank1);
  CHECK(wrong[0].digest != right[0].digest);
  CHECK(wrong[0].digest == wrong[1].digest);
}
