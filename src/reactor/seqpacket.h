// SOCK_SEQPACKET unix sockets: whole messages, the kernel's word on who sent each, descriptors.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ts {

struct Credentials {
  pid_t pid = 0;  // as seen from this pid namespace; 0: a process outside of it
  uid_t uid = 0;
  gid_t gid = 0;
};

// A listening, non-blocking socket at `path`. A socket file that nobody listens on is replaced; one
// that somebody does listen on is an error that says so. Throws kj::Exception.
kj::AutoCloseFd listenSeqpacket(const std::string& path, mode_t mode);

// For a listener that somebody else made, before the first accept: without it a message that is
// sent early has no sender.
void wantCredentials(int listener);

// Non-blocking, with the kernel's credentials on each message. Nothing: no connection waits.
// Throws on errors that are not the peer's.
std::optional<kj::AutoCloseFd> acceptSeqpacket(int listener);

// 0 or errno. A full backlog is EAGAIN, at once or after `patience` (for programs without a loop).
int connectSeqpacket(const std::string& path, kj::AutoCloseFd& out,
                     std::chrono::microseconds patience = {});

struct Packet {
  enum class Kind { Message, WouldBlock, Closed };
  Kind kind = Kind::WouldBlock;
  std::size_t size = 0;    // at most the buffer's; 0 is a message without bytes, not the end
  bool truncated = false;  // the message was longer than the buffer, or had too many descriptors
  std::optional<Credentials> from;
  std::vector<kj::AutoCloseFd> fds;
};

// Never waits. Distinguishes an empty message from the end by the credentials that come with every
// message on a socket of acceptSeqpacket() or connectSeqpacket(). A reset connection is Closed.
Packet receivePacket(int socket, void* buffer, std::size_t size);

enum class Sent { Yes, WouldBlock, Closed };
// Never waits, never raises SIGPIPE.
Sent sendPacket(int socket, const void* message, std::size_t size, const int* fds = nullptr,
                std::size_t fdCount = 0);

}  // namespace ts
