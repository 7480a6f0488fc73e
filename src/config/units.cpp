#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "config/config.h"

namespace ts {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 6> kTimes{{{"us", 1},
                                      {"ms", 1'000},
                                      {"s", 1'000'000},
                                      {"min", 60'000'000},
                                      {"h", 3'600'000'000},
                                      {"d", 86'400'000'000}}};
constexpr std::array<Unit, 9> kSizes{{{"B", 1},
                                      {"KB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000},
                                      {"TB", 1'000'000'000'000},
                                      {"KiB", 1ull << 10},
                                      {"MiB", 1ull << 20},
                                      {"GiB", 1ull << 30},
                                      {"TiB", 1ull << 40}}};

// "12" or "1.5", without rounding: whole + parts / scale.
struct Number {
  std::uint64_t whole = 0, parts = 0, scale = 1;
};

const char* read(const char* at, const char* end, Number& out) {
  auto whole = std::from_chars(at, end, out.whole);
  if (whole.ec == std::errc::invalid_argument) return nullptr;
  if (whole.ec != std::errc{}) out.whole = std::numeric_limits<std::uint64_t>::max();
  at = whole.ptr;
  if (at == end || *at != '.') return at;
  constexpr std::uint64_t kFinest = 1'000'000'000'000;
  for (++at; at != end && *at >= '0' && *at <= '9'; ++at) {
    if (out.scale == kFinest) continue;  // finer than any unit has
    out.parts = out.parts * 10 + std::uint64_t(*at - '0');
    out.scale *= 10;
  }
  return at;
}

// False: too large.
bool multiply(const Number& number, std::uint64_t factor, std::uint64_t& out) {
  __extension__ using Wide = unsigned __int128;
  Wide value = Wide(number.whole) * factor + Wide(number.parts) * factor / number.scale;
  constexpr std::uint64_t kMost = 9'200'000'000'000'000'000;
  if (value > kMost) return false;
  out = std::uint64_t(value);
  return true;
}

template <std::size_t N>
std::string namesOf(const std::array<Unit, N>& units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

// "NUMBER UNIT" with or without the space.
template <std::size_t N>
bool parse(const std::string& text, const std::array<Unit, N>& units, const char* example,
           std::uint64_t& out, std::string& why) {
  Number number;
  const char* end = read(text.data(), text.data() + text.size(), number);
  if (end == nullptr) {
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
    if (multiply(number, known.factor, out)) return true;
    why = "\"" + text + "\" is too large";
    return false;
  }
  why = "\"" + text + "\" has the unknown unit \"" + std::string(unit) + "\"; use one of " +
        namesOf(units);
  return false;
}

}  // namespace

bool parseDuration(const std::string& text, microseconds& out, std::string& why) {
  std::uint64_t value = 0;
  if (!parse(text, kTimes, "30 s", value, why)) return false;
  out = microseconds(std::int64_t(value));
  return true;
}

bool parseBytes(const std::string& text, std::uint64_t& out, std::string& why) {
  return parse(text, kSizes, "512 MiB", out, why);
}

}  // namespace ts
