#include "cli/since.h"

#include <time.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "cli/failure.h"
#include "config/config.h"

namespace ts::cli {

std::uint64_t parseSince(const std::string& text) {
  if (text == "all") return 0;
  using namespace std::chrono;
  std::tm utc{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (end != nullptr && *end == '\0') return std::uint64_t(::timegm(&utc)) * 1'000'000;
  microseconds ago{0};
  std::string why;
  if (!parseDuration(text, ago, why)) {
    throw Failure(Exit::Usage, "--since: " + why + ", or a time like 2026-01-31T08:00:00Z, or all");
  }
  auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch());
  return ago < now ? std::uint64_t((now - ago).count()) : 0;
}

std::string showTime(std::uint64_t unixUs) {
  std::time_t seconds = std::time_t(unixUs / 1'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 40> text{};
  std::size_t n = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text.data() + n, text.size() - n, ".%03d", int(unixUs / 1000 % 1000));
  return text.data();
}

}  // namespace ts::cli
