// Blocking TCP as the ranks need it: listen, connect with patience, send and receive all of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace demo {

// All throw PeerError with the address and the kernel's word for it.
int listenAt(const std::string& address);
int acceptFrom(int listener);
// Whether there is something to accept or to receive by then.
bool readableBy(int fd, std::chrono::steady_clock::time_point until);
// The listener may start after us: tries again for kPatience.
int connectTo(const std::string& address);
void sendAll(int socket, std::span<const std::byte> bytes);
void receiveAll(int socket, std::span<std::byte> bytes);

}  // namespace demo
