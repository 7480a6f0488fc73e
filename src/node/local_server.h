// The node's unix socket: takes connections, knows who speaks, reads and writes whole messages.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "local/protocol.h"
#include "log/log.h"
#include "log/throttle.h"
#include "node/message_check.h"
#include "node/process.h"
#include "node/visitors.h"
#include "reactor/fd_watch.h"

namespace ts::node {

// Who connected, as the kernel says.
struct Peer {
  Process process;
  gid_t gid = 0;
  // Root, or this daemon's own user, has started it, whomever it speaks as.
  bool isTrusted = false;
};

class LocalServer;

// One connection. What is sent and does not fit into the socket waits here, up to a bound; a peer
// that does not read loses its connection.
class Connection {
public:
  // `refusal`: the answer to whatever comes first; "" for one that is served.
  Connection(LocalServer& server, ConnectionId id, kj::AutoCloseFd fd, Peer peer,
             std::string refusal);
  KJ_DISALLOW_COPY(Connection);

  ConnectionId id() const { return id_; }
  const Peer& peer() const { return peer_; }

  // `fd`: goes along as SCM_RIGHTS.
  // Its header gets the version that was agreed on.
  void send(tsl_message message, kj::AutoCloseFd fd = kj::AutoCloseFd());
  // The one answer to a request.
  void reply(std::uint64_t request, const tsl_reply& reply, kj::AutoCloseFd fd = kj::AutoCloseFd());
  void reply(std::uint64_t request, tsl_status status, std::string_view detail);
  // The version that all messages from here on have.
  void agree(std::uint16_t version) { version_ = version; }
  // Ends when what is queued is out.
  void finish();
  // The other end is closed, also where its last messages have not been read yet.
  bool hungUp() const;

private:
  friend class LocalServer;
  struct Out {
    tsl_message message;
    kj::AutoCloseFd fd;
  };
  void readable();
  void heard(const tsl_message& message, pid_t speaker);
  void refuse(const Rejection& rejection);
  void writable();
  bool flush();  // false: the connection is broken
  void end();

  LocalServer& server_;
  ConnectionId id_;
  kj::AutoCloseFd fd_;
  Peer peer_;
  std::string refusal_;
  std::uint64_t last_ = 0;  // the highest request number
  std::uint16_t version_ = TSL_VERSION;
  std::deque<Out> out_;
  bool finishing_ = false;
  bool ended_ = false;
  FdWatch read_;
  FdWatch write_;
};

// What the messages mean.
class LocalHandler {
public:
  virtual ~LocalHandler() noexcept(false) {}
  // A request whose form is right. `speaker` may be another process than the peer: a forked child.
  virtual void received(Connection& connection, const tsl_message& message, pid_t speaker) = 0;
  virtual void closed(Connection& connection) = 0;  // for whatever reason; it is gone afterwards
};

class LocalServer final : private kj::TaskSet::ErrorHandler {
public:
  // `listener`: bound and listening. Descriptors may run out: then those who wait, wait, until a
  // connection ends or a moment has passed.
  LocalServer(LibeventPort& port, kj::AutoCloseFd listener, VisitorLimits limits,
              LocalHandler& handler, Log& log);
  KJ_DISALLOW_COPY(LocalServer);

  Connection* find(ConnectionId id);
  std::size_t connections() const { return connections_.size(); }
  void stopListening();

private:
  friend class Connection;
  void acceptAll();
  bool acceptOne();
  bool acceptInto();
  void pauseAccepting(const char* why);
  void resumeAccepting();
  void taskFailed(kj::Exception&& exception) override;
  void welcome(kj::AutoCloseFd fd, Peer peer);
  void overstayed(ConnectionId id);
  void drop(ConnectionId id);
  void reap();
  void complain(Throttle& about, Line line);

  LibeventPort& port_;
  LocalHandler& handler_;
  Log& log_;
  kj::AutoCloseFd listener_;
  FdWatch accept_;
  kj::AutoCloseFd accepted_;  // a connection of which nobody knows yet whose it is
  bool paused_ = false;       // no descriptors are left
  bool stopped_ = false;
  Throttle pauses_;
  Throttle nonsense_;
  Throttle strangers_;
  Throttle crowds_;
  Throttle silences_;
  std::uint64_t lastId_ = 0;
  Visitors visitors_;
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> ended_;  // until no callback of theirs is on the stack
  // Not one promise for each: what runs in it may be what starts the next.
  kj::TaskSet tasks_;
};

// The socket at `path`, open to all: what a caller may do is decided by who it is. The directory is
// made when it is not there. Throws when somebody serves it already.
kj::AutoCloseFd listenAt(const std::string& path);
// The socket that systemd passed; an empty one when it did not.
kj::AutoCloseFd inheritedListener();

}  // namespace ts::node
