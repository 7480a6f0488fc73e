#include "report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

namespace demo {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

void printForPeople(const nlohmann::ordered_json& result) {
  for (const auto& [key, value] : result.items()) {
    std::printf("%-14s %s\n", key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
}

}  // namespace

Report::Report(const Options& options, std::chrono::steady_clock::time_point start)
    : options_(options), start_(start) {
  if (options.curve.empty()) return;
  curve_.open(options.curve, std::ios::trunc);
  if (!curve_) throw std::runtime_error("--out " + options.curve + ": " + std::strerror(errno));
}

void Report::step(unsigned step, const Scores& scores) {
  scores_.push_back(scores);
  if (curve_.is_open()) {
    const nlohmann::ordered_json line = {{"step", step},
                                         {"reward", scores.reward},
                                         {"held_out", scores.heldOut},
                                         {"at_s", elapsed()}};
    curve_ << line.dump() << std::endl;
  }
  if (options_.quiet) return;
  std::fprintf(stderr, "%s rank %u: step %u of %u  reward %.3f  held-out %.3f  (chance %.3f)\n",
               options_.name.c_str(), options_.meeting.rank, step + 1, options_.steps,
               scores.reward, scores.heldOut, kChance);
}

void Report::result(const CudaDevice& device, const TurnCounts& turns, std::uint64_t digest) const {
  const std::size_t tenth = std::max<std::size_t>(1, scores_.size() / 10);
  const nlohmann::ordered_json result = {
      {"name", options_.name},
      {"rank", options_.meeting.rank},
      {"world", options_.meeting.world},
      {"card", device.card().name},
      {"card_bytes", device.card().totalBytes},
      {"bytes", device.bytes()},
      {"steps", scores_.size()},
      {"chance", kChance},
      {"reward_first", meanHeldOut(0, tenth)},
      {"reward_last", meanHeldOut(scores_.size() - tenth, tenth)},
      {"digest", hex(digest)},
      {"wall_s", elapsed()},
      {"busy_s", seconds(device.busy())},
      {"waited_s", seconds(turns.waited)},
      {"slices", turns.slices},
      {"switches", turns.switches},
      {"moved_bytes", turns.movedBytes},
  };
  if (options_.json)
    std::cout << result.dump() << std::endl;
  else
    printForPeople(result);
}

double Report::elapsed() const {
  return seconds(std::chrono::steady_clock::now() - start_);
}

double Report::meanHeldOut(std::size_t first, std::size_t count) const {
  double sum = 0;
  for (std::size_t k = first; k < first + count; ++k) sum += scores_[k].heldOut;
  return sum / static_cast<double>(count);
}

}  // namespace demo
