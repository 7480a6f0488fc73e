// The task: arithmetic modulo 1000 whose answers a program can check digit by digit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/kernels/demo_policy.h"

namespace demo {

// What only the verifier knows; the policy learns it from rewards alone.
enum class Task { Add, Subtract };

// Digits of a sum modulo 1000 are evenly spread, so whoever ignores the problem is right in one
// digit of ten, whatever they answer.
inline constexpr double kChance = 1.0 / kBase;

// One problem in eight is held out: it is never trained on.
std::vector<Problem> trainingProblems(std::uint64_t seed, std::size_t count);
std::vector<Problem> heldOutProblems(std::uint64_t seed, std::size_t count);
bool isHeldOut(const Problem& problem);

// The share of right digits.
float verify(Task task, const Problem& problem, std::span<const std::uint8_t> answer);

// One reward for each answer of kDigits; `group` answers in a row belong to one problem.
std::vector<float> verifyAll(Task task, std::span<const Problem> problems,
                             std::span<const std::uint8_t> answers, std::size_t group);
double mean(std::span<const float> values);

}  // namespace demo
