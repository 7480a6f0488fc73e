#include "simgpu/units.h"

#include <cmath>
#include <cstdlib>
#include <span>

namespace simgpu {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kBytes[] = {{"", 1},
                           {"B", 1},
                           {"kB", 1e3},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"KiB", 1024.0},
                           {"MiB", 1048576.0},
                           {"GiB", 1073741824.0},
                           {"TiB", 1099511627776.0}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};

std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  std::string whole = trimmed(text);
  char* end = nullptr;
  double number = std::strtod(whole.c_str(), &end);
  if (end == whole.c_str() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string unit = trimmed(end);
  if (number == 0 && unit.empty()) return 0;
  for (const Unit& u : units)
    if (u.name == unit && number * u.factor < 1.8e19)
      return static_cast<std::uint64_t>(number * u.factor + 0.5);
  return std::nullopt;
}

}  // namespace

std::string trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::optional<std::uint64_t> parseBytes(std::string_view text) {
  return parse(text, kBytes);
}

std::optional<std::uint64_t> parseRate(std::string_view text) {
  std::string whole = trimmed(text);
  if (whole.size() > 2 && whole.ends_with("/s")) whole.resize(whole.size() - 2);
  return parse(whole, kBytes);
}

std::optional<std::uint64_t> parseDuration(std::string_view text) {
  return parse(text, kDurations);
}

}  // namespace simgpu
