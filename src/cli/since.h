// "30min" ago, "2026-01-31T08:00:00Z" or "all" as microseconds since 1970.
#pragma once

#include <cstdint>
#include <string>

namespace ts::cli {

// Throws Failure (usage) with the text and the way out.
std::uint64_t parseSince(const std::string& text);
// "2026-01-31 08:00:00.123" in local time, for people.
std::string showTime(std::uint64_t unixUs);

}  // namespace ts::cli
