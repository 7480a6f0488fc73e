// Sizes, rates and durations as people write them: "1 GiB", "4 GB/s", "5 ms".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simgpu {

std::optional<std::uint64_t> parseBytes(
    std::string_view text);                                     // "512 MiB"; a bare number is bytes
std::optional<std::uint64_t> parseRate(std::string_view text);  // "4 GB/s"; 0 is unlimited
std::optional<std::uint64_t> parseDuration(
    std::string_view text);  // nanoseconds; "5 ms", "2 s", "0"
std::string trimmed(std::string_view text);

}  // namespace simgpu
