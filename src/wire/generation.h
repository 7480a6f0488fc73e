// One life of a master, as nodes and masters compare it.
#pragma once

#include <cstdint>

namespace ts {

struct Generation {
  std::uint32_t number = 0;  // 0: none seen yet
  std::uint64_t id = 0;      // random: two masters with the same number differ here
  bool operator==(const Generation&) const = default;
};

}  // namespace ts
