#include "bench_common/phases.h"

#include <cmath>

namespace ts::bench {

std::map<std::string, int> perSwitch(const Orders& before, const Orders& after, int switches,
                                     int nodes) {
  std::map<std::string, int> rounded;
  for (const auto& [verb, count] : after) {
    const auto earlier = before.find(verb);
    const double more = count - (earlier == before.end() ? 0 : earlier->second);
    const int each = static_cast<int>(std::lround(more / switches / nodes));
    if (each > 0) rounded[verb] = each;
  }
  return rounded;
}

std::vector<int> phasesOf(const std::map<std::string, int>& orders) {
  static const std::vector<std::vector<std::string>> kPhases = {
      {"end-slice", "prepare"}, {"quiesce"}, {"save"}, {"drop-booking", "restore"}, {"grant"}};
  std::vector<int> phases;
  for (const auto& verbs : kPhases) {
    int messages = 0;
    for (const std::string& verb : verbs) {
      const auto found = orders.find(verb);
      if (found != orders.end()) messages += found->second;
    }
    if (messages > 0) phases.push_back(messages);
  }
  const bool nothingMoves = orders.count("prepare") == 0 && phases.size() > 1;
  if (nothingMoves) {  // the end of a slice and what follows it go out together
    phases[1] += phases[0];
    phases.erase(phases.begin());
  }
  return phases;
}

int total(const std::map<std::string, int>& orders) {
  int sum = 0;
  for (const auto& [verb, count] : orders) sum += count;
  return sum;
}

}  // namespace ts::bench
