#include "config/users.h"

#include <pwd.h>

#include <array>
#include <charconv>

namespace ts {

std::optional<uid_t> uidNamed(const std::string& user) {
  uid_t number = 0;
  const char* end = user.data() + user.size();
  auto [stop, error] = std::from_chars(user.data(), end, number);
  // The largest is no user: the kernel's "leave it as it is".
  if (error == std::errc{} && stop == end)
    return number == uid_t(-1) ? std::nullopt : std::optional(number);
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0)
    return std::nullopt;
  return found == nullptr ? std::nullopt : std::optional(found->pw_uid);
}

std::string unknownMasterUser(const std::string& user, const std::string& file) {
  return file + ": master_user is \"" + user +
         "\", and this machine knows no such user, so that no master could prove itself; create it "
         "or "
         "name a uid";
}

}  // namespace ts
