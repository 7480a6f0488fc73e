// Times, and what can be said about many of them.
#pragma once

#include <cstdint>
#include <vector>

namespace ts::bench {

std::int64_t nowNs();  // CLOCK_MONOTONIC: the same in all processes

struct Spread {
  double median = 0, p99 = 0, least = 0;
};
Spread spreadOf(std::vector<double> values);
void append(std::vector<double>& all, const std::vector<double>& more);

}  // namespace ts::bench
