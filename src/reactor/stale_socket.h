// The file of a unix socket outlives its daemon; only one that nobody listens on may go.
#pragma once

#include <string>

namespace ts {

// Removes what a daemon that is gone has left at `path`; nothing there is fine. `type`: SOCK_STREAM
// or SOCK_SEQPACKET, as the new listener will have. Throws a sentence when somebody listens, when
// that cannot be told, and when it is no socket.
void removeStaleSocket(const std::string& path, int type);

}  // namespace ts
