#include "problems.h"

#include <numeric>

namespace demo {
namespace {

constexpr unsigned kModulus = 1000;

unsigned valueOf(const std::uint8_t* digits) {
  return digits[0] + 10u * digits[1] + 100u * digits[2];
}

void spell(unsigned value, std::uint8_t* digits) {
  for (int k = 0; k < kDigits; ++k, value /= kBase) {
    digits[k] = static_cast<std::uint8_t>(value % kBase);
  }
}

Problem draw(std::uint64_t bits) {
  Problem problem = {};
  spell(static_cast<unsigned>(bits % kModulus), problem.a);
  spell(static_cast<unsigned>((bits >> 32) % kModulus), problem.b);
  return problem;
}

std::vector<Problem> drawThose(bool heldOut, std::uint64_t seed, std::size_t count) {
  std::vector<Problem> problems;
  problems.reserve(count);
  for (std::uint64_t k = 0; problems.size() < count; ++k) {
    const Problem problem = draw(mix(seed, k));
    if (isHeldOut(problem) == heldOut) problems.push_back(problem);
  }
  return problems;
}

}  // namespace

bool isHeldOut(const Problem& problem) {
  return mix(valueOf(problem.a) * kModulus + valueOf(problem.b)) % 8 == 0;
}

std::vector<Problem> trainingProblems(std::uint64_t seed, std::size_t count) {
  return drawThose(false, seed, count);
}
std::vector<Problem> heldOutProblems(std::uint64_t seed, std::size_t count) {
  return drawThose(true, seed, count);
}

float verify(Task task, const Problem& problem, std::span<const std::uint8_t> answer) {
  const unsigned a = valueOf(problem.a);
  const unsigned b = valueOf(problem.b);
  const unsigned right = task == Task::Add ? a + b : a + kModulus - b;
  std::uint8_t digits[kDigits];
  spell(right % kModulus, digits);
  int hits = 0;
  for (std::size_t k = 0; k < kDigits; ++k) hits += answer[k] == digits[k];
  return static_cast<float>(hits) / kDigits;
}

std::vector<float> verifyAll(Task task, std::span<const Problem> problems,
                             std::span<const std::uint8_t> answers, std::size_t group) {
  std::vector<float> rewards;
  rewards.reserve(problems.size() * group);
  for (std::size_t k = 0; k < problems.size() * group; ++k) {
    rewards.push_back(verify(task, problems[k / group], answers.subspan(k * kDigits, kDigits)));
  }
  return rewards;
}

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace demo
