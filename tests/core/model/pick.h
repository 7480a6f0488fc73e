// What the moves share: choosing one of those that fit, and how much may be broken at a time.
#pragma once

#include <vector>

#include "world.h"

namespace ts::test {

inline constexpr int kMaxTroubles = 3;  // "up to three failures at a time"

// The whom-th of those that fit.
template <typename Map, typename Pred>
auto World::pick(Map& map, unsigned whom, Pred pred) -> typename Map::mapped_type* {
  std::vector<typename Map::mapped_type*> all;
  for (auto& [id, value] : map) {
    if (pred(value)) all.push_back(&value);
  }
  return all.empty() ? nullptr : all[whom % all.size()];
}

}  // namespace ts::test
