// Whether what came over the local socket is a message at all: sizes, magic, version, texts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "local/protocol.h"

namespace ts::node {

struct Rejection {
  tsl_status status = TSL_PROTOCOL;
  std::uint64_t request = 0;  // whom the answer is for, as far as it can be told
  std::string why;
};

// `cut`: the peer sent more than a message holds. `last` is the highest request number of the
// connection so far, 0 before the hello.
std::optional<Rejection> checkMessage(const tsl_message& message, std::size_t size, bool cut,
                                      std::uint64_t last);

// A cancel may come from a signal handler: it has the number of the acquire that it ends, has no
// answer of its own, and overtakes what another thread is about to send.
bool isOrdered(std::uint16_t type);

// A text of fixed size that ends in NUL inside its bounds (checkMessage has seen to that).
template <std::size_t N>
std::string_view textOf(const char (&field)[N]) {
  return std::string_view(field);
}

// Names of groups and jobs: [A-Za-z0-9._-], not empty.
bool isName(std::string_view text);
// Text from a peer made fit to be shown: what is not printable becomes '?'.
std::string printable(std::string_view text);

}  // namespace ts::node
