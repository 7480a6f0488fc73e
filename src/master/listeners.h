// The sockets of the master: accepts, gives each connection its entrance, ends those that overstay.
#pragma once

#include <kj/async-io.h>

#include <deque>
#include <map>
#include <string>

#include "log/log.h"
#include "master/door.h"
#include "reactor/libevent_io.h"

namespace ts {

class Listeners final : private kj::TaskSet::ErrorHandler {
public:
  // Who connects has this long to greet and prove itself.
  static constexpr Duration kGreetDeadline = std::chrono::seconds(10);
  // So many from one address, or of one user of this machine, may be about to: the next one ends
  // the oldest. Who floods the master hurts himself, and who is quick still comes in.
  static constexpr std::size_t kMostUnproven = 1024;

  Listeners(LibeventPort& port, House& house, std::size_t mostUnproven = kMostUnproven);

  // Both throw a sentence with the address when it cannot be had. What comes back is where it
  // listens, with the port that port 0 became.
  std::string tcp(const std::string& address, kj::WaitScope& scope);
  std::string unixSocket(const std::string& path);

  std::size_t connections() const { return connections_; }

private:
  struct Listener {
    kj::Own<kj::ConnectionReceiver> receiver;
    bool local = false;  // a unix socket
  };
  class Connection;

  void waitsToEnter(Connection& connection);
  void waitsNoMore(Connection& connection);
  void add(kj::Own<kj::ConnectionReceiver> receiver, bool local);
  kj::Promise<void> acceptFrom(Listener& listener);
  kj::Promise<void> afterFailure(kj::Exception&& exception);
  void take(Listener& listener, kj::Own<kj::AsyncIoStream> stream);
  void taskFailed(kj::Exception&& exception) override;

  LibeventPort& port_;
  House& house_;
  kj::Own<kj::LowLevelAsyncIoProvider> low_;
  kj::Own<kj::AsyncIoProvider> io_;
  std::deque<Listener> listeners_;
  std::size_t connections_ = 0;
  // By where they come from, oldest first: those that have not proved themselves.
  std::map<std::string, std::deque<Connection*>> unproven_;
  std::size_t mostUnproven_;
  Instant complainedAt_;
  kj::TaskSet tasks_;
};

}  // namespace ts
