#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "config/config.h"

namespace ts {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 6> kTimes{
    {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}}};
constexpr std::array<Unit, 9> kSizes{{{"B", 1},
                                      {"KB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9},
                                      {"TB", 1e12},
                                      {"KiB", 1024.0},
                                      {"MiB", 1048576.0},
                                      {"GiB", 1073741824.0},
                                      {"TiB", 1099511627776.0}}};

template <std::size_t N>
std::string namesOf(const std::array<Unit, N>& units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

// "NUMBER UNIT" with or without the space.
template <std::size_t N>
bool parse(const std::string& text, const std::array<Unit, N>& units, const char* example,
           double& out, std::string& why) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || text[0] == '-') {
    why = "\"" + text + "\" does not begin with a number; write it like \"" + example + "\"";
    return false;
  }
  std::string_view unit(end, std::size_t(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) {
    why =
        "\"" + text + "\" has no unit; add one of " + namesOf(units) + ", like \"" + example + "\"";
    return false;
  }
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    out = number * known.factor;
    if (out < 9.2e18) return true;
    why = "\"" + text + "\" is too large";
    return false;
  }
  why = "\"" + text + "\" has the unknown unit \"" + std::string(unit) + "\"; use one of " +
        namesOf(units);
  return false;
}

}  // namespace

bool parseDuration(const std::string& text, microseconds& out, std::string& why) {
  double value = 0;
  if (!parse(text, kTimes, "30 s", value, why)) return false;
  out = microseconds(std::llround(value));
  return true;
}

bool parseBytes(const std::string& text, std::uint64_t& out, std::string& why) {
  double value = 0;
  if (!parse(text, kSizes, "512 MiB", value, why)) return false;
  out = std::uint64_t(std::llround(value));
  return true;
}

}  // namespace ts
