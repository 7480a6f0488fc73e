// What a run leaves behind: a learning curve, a line per step, and a result.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "cuda_device.h"
#include "options.h"
#include "trainer.h"
#include "turns.h"

namespace demo {

class Report {
public:
  // Throws std::runtime_error when the curve's file cannot be written.
  Report(const Options& options, std::chrono::steady_clock::time_point start);

  void step(unsigned step, const Scores& scores);
  // The last thing on stdout.
  void result(const CudaDevice& device, const TurnCounts& turns, std::uint64_t digest) const;

private:
  double elapsed() const;
  double meanHeldOut(std::size_t first, std::size_t count) const;

  const Options& options_;
  std::chrono::steady_clock::time_point start_;
  std::ofstream curve_;
  std::vector<Scores> scores_;
};

}  // namespace demo
