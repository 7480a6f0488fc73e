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

std::string visible(std::string_view utf8) {
  std::string out;
  unsigned char before = 0;
  for (unsigned char byte : utf8) {
    bool high = byte >= 0x80 && byte < 0xa0;
    // U+0080 to U+009F: the '?' takes the place of both bytes, or it would be no UTF-8 any more.
    if (high && before == 0xc2) {
      out.back() = '?';
    } else {
      // What is no UTF-8 may be a control character to a terminal of eight bits.
      bool control = (byte < 0x20 && byte != '\n') || byte == 0x7f || (high && before < 0x80);
      out += control ? '?' : char(byte);
    }
    before = static_cast<unsigned char>(out.back());
  }
  return out;
}

}  // namespace ts::cli
