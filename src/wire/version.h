// The versions of the daemons' protocol, and how two peers agree on one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ts {

struct VersionRange {
  std::uint16_t min = 0;
  std::uint16_t max = 0;
};

inline constexpr VersionRange kWireVersions{1, 1};  // what this build speaks

// The highest version that both speak, or nothing.
std::optional<std::uint16_t> commonVersion(VersionRange ours, VersionRange theirs);
std::string describe(VersionRange range);

}  // namespace ts
