// Users as configuration names them: by name or by number.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace ts {

// Asks this machine's user database, which may ask a network: for start-up and workers, not for a
// loop.
std::optional<uid_t> uidNamed(const std::string& user);

// What to say when `master_user` of `file` is nobody here: then no master could be believed.
std::string unknownMasterUser(const std::string& user, const std::string& file);

}  // namespace ts
