#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>

#include "cuda_device.h"
#include "options.h"
#include "peers.h"
#include "report.h"
#include "trainer.h"
#include "turns.h"

namespace {

using namespace demo;
using Clock = std::chrono::steady_clock;

constexpr int kFailed = 1;
constexpr int kNoRoom = 3;

// A device may only be touched in a slice, so it is made in the first one.
struct Rank {
  Rank(const Options& options, Peers& peers)
      : device(options.device), trainer(device, peers, options.trainer) {}
  CudaDevice device;
  Trainer trainer;
};

// The sandboxes: the judgement itself takes no time worth mentioning.
void reward(Trainer& trainer, const Options& options, unsigned step) {
  const Row row;
  const Clockwork clockwork(options.trainer.timeScale);
  const double luck = 2 * uniform(mix(options.trainer.seed, step)) - 1;
  const auto end = Clock::now() + std::chrono::nanoseconds(
                                      clockwork.ns(row.reward * (1 + luck * row.rewardSpread)));
  trainer.reward();
  std::this_thread::sleep_until(end);
}

int train(const Options& options, Clock::time_point start) {
  Report report(options, start);
  Peers peers(options.meeting);
  Turns turns(options.meeting.world);
  std::unique_ptr<Rank> rank;
  for (unsigned step = 0; step < options.steps; ++step) {
    turns.acquire("sampler");  // still ours if a step has just been trained
    if (!rank) rank = std::make_unique<Rank>(options, peers);
    rank->trainer.sample(step);
    turns.yield();
    reward(rank->trainer, options, step);
    turns.acquire("trainer");
    report.step(step, rank->trainer.train(step));
  }
  report.result(rank->device, turns.counts(), rank->trainer.digest());
  rank->device.close();
  turns.yield();
  return 0;
}

// Says what is held, and returns when whoever started us has closed our stdin.
int untilClosed(const Options& options, const CudaDevice& device) {
  std::printf("%s holds %llu bytes\n", options.name.c_str(),
              static_cast<unsigned long long>(device.bytes()));
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

int hold(const Options& options) {
  Peers alone(Meeting{});
  const Rank rank(options, alone);
  return untilClosed(options, rank.device);
}

int holdAllBut(const Options& options) {
  CudaDevice device(options.device);
  const std::uint64_t free = device.freeBytes();
  if (free > *options.leaveFree) device.make<std::uint8_t>(free - *options.leaveFree);
  return untilClosed(options, device);
}

int run(const Options& options, Clock::time_point start) {
  if (options.leaveFree) return holdAllBut(options);
  if (options.hold) return hold(options);
  return train(options, start);
}

// Ends at once: what tidies up at exit may call the driver, and that waits while others have the
// turn.
[[noreturn]] void fail(const Options& options, const std::exception& error, int code) {
  std::fprintf(stderr, "%s rank %u: %s\n", options.name.c_str(), options.meeting.rank,
               error.what());
  std::_Exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = Clock::now();
  const Parsed parsed = parseOptions(argc, argv);
  if (parsed.exit) return *parsed.exit;
  const Options& options = parsed.options;
  try {
    return run(options, start);
  } catch (const NoRoom& error) {
    fail(options, error, kNoRoom);
  } catch (const std::exception& error) {
    fail(options, error, kFailed);
  }
}
