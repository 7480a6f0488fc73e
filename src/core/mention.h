// How a sentence of the core names what only has a number there: `node #3`. Whoever shows the
// sentence puts the name in the number's place.
#pragma once

#include <string>

#include "ids.h"

namespace ts {

inline std::string mention(NodeId id) {
  return "node #" + std::to_string(std::uint32_t(id));
}
inline std::string mention(GroupId id) {
  return "group #" + std::to_string(std::uint32_t(id));
}
inline std::string mention(MemberId id) {
  return "member #" + std::to_string(std::uint64_t(id));
}
inline std::string mention(ParticipantId id) {
  return "participant #" + std::to_string(std::uint64_t(id));
}
inline std::string mention(const Device& d) {
  return "device #" + std::to_string(std::uint32_t(d.node)) + ":" + std::to_string(d.index);
}

}  // namespace ts
