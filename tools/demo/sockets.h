// Blocking TCP as the ranks need it: listen, connect with patience, send and receive all of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace demo {

// All throw PeerError with the address and the kernel's word for it.
int listenAt(const std::string& address);
int acceptFrom(int listener);
// The listener may start after us: tries again for half a minute.
int connectTo(const std::string& address);
void sendAll(int socket, std::span<const std::byte> bytes);
void receiveAll(int socket, std::span<std::byte> bytes);

}  // namespace demo
