#include "master/users.h"

#include <pwd.h>

#include <algorithm>
#include <array>

namespace ts {
namespace {

bool isNamed(uid_t uid, const std::string& name) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return false;
  return found != nullptr && found->pw_uid == uid;
}

}  // namespace

bool contains(const std::vector<std::string>& names, uid_t uid) {
  std::string number = std::to_string(uid);
  return std::ranges::any_of(
      names, [&](const std::string& name) { return name == number || isNamed(uid, name); });
}

}  // namespace ts
