// The demo's policy: a network with one hidden layer that writes an answer digit by digit.
// Compiled by nvcc for a real GPU and by the C++ compiler for simgpu; one text, two machines.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define DEMO_FN __host__ __device__ inline
#else
#define DEMO_FN inline
#endif

namespace demo {

inline constexpr int kBase = 10;   // symbols the policy chooses from; chance is 1 / kBase
inline constexpr int kDigits = 3;  // digits of each operand and of the answer, lowest first
inline constexpr int kHidden = 64;

// What the policy sees when it writes a digit: both operands in this column and in the one below,
// each as a thermometer (a digit d lights d lamps), the digit it wrote last, and whether this is
// the first one.
inline constexpr int kLamps = kBase - 1;
inline constexpr int kInputs = 4 * kLamps + kBase + 1;

// The weights are one array: input layer, its biases, output layer, its biases.
inline constexpr int kHiddenBias = kInputs * kHidden;
inline constexpr int kOutput = kHiddenBias + kHidden;
inline constexpr int kOutputBias = kOutput + kHidden * kBase;
inline constexpr int kWeights = kOutputBias + kBase;

struct Problem {
  std::uint8_t a[4];  // digits, lowest first; the last byte is unused
  std::uint8_t b[4];
};

// A counter-based random number: the same counter gives the same number on every machine.
DEMO_FN std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
DEMO_FN std::uint64_t mix(std::uint64_t seed, std::uint64_t counter) {
  return mix(mix(seed) ^ counter);
}
DEMO_FN float uniform(std::uint64_t bits) {
  return static_cast<float>(bits >> 40) * (1.0f / 16777216.0f);
}

// The lit inputs of one column; everything else is 0, so the input layer is a sum of rows.
struct Lit {
  int rows[4 * kLamps + 2];
  int count = 0;
};

DEMO_FN void light(Lit& lit, int bank, int digit) {
  for (int lamp = 0; lamp < digit; ++lamp) lit.rows[lit.count++] = bank * kLamps + lamp;
}

DEMO_FN Lit lamps(const Problem& problem, const std::uint8_t* answer, int column) {
  Lit lit;
  light(lit, 0, problem.a[column]);
  light(lit, 1, problem.b[column]);
  if (column == 0) {
    lit.rows[lit.count++] = kInputs - 1;
    return lit;
  }
  light(lit, 2, problem.a[column - 1]);
  light(lit, 3, problem.b[column - 1]);
  lit.rows[lit.count++] = 4 * kLamps + answer[column - 1];
  return lit;
}

struct Forward {
  float hidden[kHidden];
  float logp[kBase];
};

DEMO_FN void hiddenLayer(const float* weights, const Lit& lit, float* hidden) {
  for (int h = 0; h < kHidden; ++h) hidden[h] = weights[kHiddenBias + h];
  for (int k = 0; k < lit.count; ++k) {
    const float* row = weights + lit.rows[k] * kHidden;
    for (int h = 0; h < kHidden; ++h) hidden[h] += row[h];
  }
  for (int h = 0; h < kHidden; ++h) hidden[h] = hidden[h] > 0 ? hidden[h] : 0;
}

// Log-probabilities of the next digit.
DEMO_FN void forward(const float* weights, const Lit& lit, Forward& out) {
  hiddenLayer(weights, lit, out.hidden);
  for (int c = 0; c < kBase; ++c) out.logp[c] = weights[kOutputBias + c];
  for (int h = 0; h < kHidden; ++h) {
    const float* row = weights + kOutput + h * kBase;
    for (int c = 0; c < kBase; ++c) out.logp[c] += out.hidden[h] * row[c];
  }
  float top = out.logp[0];
  for (int c = 1; c < kBase; ++c) top = out.logp[c] > top ? out.logp[c] : top;
  float sum = 0;
  for (int c = 0; c < kBase; ++c) sum += expf(out.logp[c] - top);
  const float norm = top + logf(sum);
  for (int c = 0; c < kBase; ++c) out.logp[c] -= norm;
}

DEMO_FN int sampleDigit(const float* logp, float at) {
  float sum = 0;
  for (int c = 0; c < kBase; ++c) {
    sum += expf(logp[c]);
    if (at < sum) return c;
  }
  return kBase - 1;
}

}  // namespace demo
