#include "cli/words.h"

#include <array>
#include <cstdio>

namespace ts::cli {
namespace {

std::string oneDecimal(double value, const char* unit) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
  return text.data();
}

std::string twoParts(std::uint64_t seconds, std::uint64_t big, const char* bigUnit,
                     std::uint64_t small, const char* smallUnit) {
  std::string text = std::to_string(seconds / big) + " " + bigUnit;
  std::uint64_t rest = seconds % big / small;
  return rest == 0 ? text : text + " " + std::to_string(rest) + " " + smallUnit;
}

}  // namespace

std::string showBytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return oneDecimal(value, kUnits[unit]);
}

std::string showDuration(std::uint64_t us) {
  if (us < 1000) return std::to_string(us) + " us";
  if (us < 1'000'000) return oneDecimal(double(us) / 1e3, "ms");
  if (us < 60'000'000) return oneDecimal(double(us) / 1e6, "s");
  std::uint64_t seconds = us / 1'000'000;
  if (seconds < 3600) return twoParts(seconds, 60, "min", 1, "s");
  if (seconds < 86400) return twoParts(seconds, 3600, "h", 60, "min");
  return twoParts(seconds, 86400, "d", 3600, "h");
}

std::string counted(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string visible(std::string utf8) {
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto byte = static_cast<unsigned char>(utf8[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) utf8[i] = '?';
    // U+0080 to U+009F; what is no UTF-8 may be one of them to a terminal of eight bits.
    bool second = i > 0 && static_cast<unsigned char>(utf8[i - 1]) >= 0x80;
    bool follows = i > 0 && static_cast<unsigned char>(utf8[i - 1]) == 0xc2;
    if (byte >= 0x80 && byte < 0xa0 && (follows || !second)) utf8[i] = '?';
  }
  return utf8;
}

}  // namespace ts::cli
