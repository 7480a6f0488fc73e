// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ts::cli {

std::string showBytes(std::uint64_t bytes);                   // "3.1 GiB"
std::string showDuration(std::uint64_t microseconds);         // "870 us", "12.3 s", "2 h 5 min"
std::string counted(std::size_t n, const std::string& noun);  // "1 job", "2 jobs"
std::string joined(const std::vector<std::string>& words, const std::string& between = ", ");

// Text of others on a terminal: a control character but the end of a line is shown as '?', for some
// terminals obey them.
std::string visible(std::string_view utf8);

}  // namespace ts::cli
