// What may name a group, a job or a node: it ends up in logs, paths and on command lines.
#pragma once

#include <algorithm>
#include <string_view>

namespace ts {

// 1 to 63 of A-Z a-z 0-9 . _ -
inline bool isName(std::string_view text) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace ts
