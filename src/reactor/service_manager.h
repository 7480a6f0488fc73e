// Tells the service manager how the daemon is: ready, alive, stopping. Speaks systemd's protocol
// itself, a datagram to NOTIFY_SOCKET, so that no library of systemd is needed.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "reactor/libevent_port.h"

namespace ts {

// What a service manager put into the environment of a daemon that it started.
struct ServiceEnvironment {
  std::string socket;                                 // "": nobody wants to be told
  std::optional<std::chrono::microseconds> watchdog;  // how long it waits for a sign of life
};
// Takes it out: programs that the daemon starts must not speak for it. Call before there are
// threads.
ServiceEnvironment takeServiceEnvironment();

class ServiceManager {
public:
  ServiceManager(ServiceEnvironment environment, kj::Timer& timer);
  KJ_DISALLOW_COPY(ServiceManager);

  // From here on a sign of life is sent twice per watchdog's time, by the loop: a loop that stands
  // still is found out and ended, and the daemon started anew. Returns "", or why the manager
  // cannot be told.
  std::string ready();
  // The daemon ends as asked. Signs of life go on: the end may wait for a move that is under way.
  void stopping();

private:
  int send(const std::string& state, int flags) const;  // 0 or errno
  kj::Promise<void> stayAlive();

  ServiceEnvironment environment_;
  kj::Timer& timer_;
  kj::AutoCloseFd fd_;  // from the start: a daemon that is out of descriptors is still alive
  kj::Promise<void> alive_ = nullptr;
};

}  // namespace ts
