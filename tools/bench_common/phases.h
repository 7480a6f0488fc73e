// What the orders of a switch were, and in which phases they went out.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ts::bench {

using Orders = std::map<std::string, double>;

// Orders for each of `switches` on each of `nodes`, rounded; what hardly ever happened is left out.
std::map<std::string, int> perSwitch(const Orders& before, const Orders& after, int switches,
                                     int nodes);

// Messages that go to a node in each phase: those of a phase are sent together, and the next phase
// waits for their answers.
std::vector<int> phasesOf(const std::map<std::string, int>& orders);

int total(const std::map<std::string, int>& orders);

}  // namespace ts::bench
