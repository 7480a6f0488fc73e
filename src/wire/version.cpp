#include "wire/version.h"

#include <algorithm>

namespace ts {

std::optional<std::uint16_t> commonVersion(VersionRange ours, VersionRange theirs) {
  std::uint16_t highest = std::min(ours.max, theirs.max);
  if (highest < std::max(ours.min, theirs.min)) return std::nullopt;
  return highest;
}

std::string describe(VersionRange range) {
  return std::to_string(range.min) + " to " + std::to_string(range.max);
}

}  // namespace ts
