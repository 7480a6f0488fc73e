// What somebody most likely meant to write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ts {

// The candidate nearest to `word` by edit distance, or "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ts
