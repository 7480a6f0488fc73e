#include "node/local_server.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "reactor/pidfd.h"
#include "reactor/seqpacket.h"

namespace ts::node {
namespace {

constexpr std::size_t kMaxQueued = 64;
constexpr int kAcceptsAtOnce = 64;
constexpr auto kPause = 100 * kj::MILLISECONDS;
constexpr int kPeerPidfd = 77;      // SO_PEERPIDFD, Linux 6.5
constexpr int kFirstInherited = 3;  // SD_LISTEN_FDS_START
constexpr mode_t kSocketMode = 0666;

// Throws when no descriptor is left: that says nothing about the peer.
Pidfd pidfdOfPeer(int fd, pid_t pid) {
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (::getsockopt(fd, SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0) {
    return {kj::AutoCloseFd(pidfd), 0};
  }
  auto opened = openPidfd(pid);
  if (opened.error == EMFILE || opened.error == ENFILE) KJ_FAIL_SYSCALL("pidfd_open", opened.error);
  return opened;
}

struct PeerLook {
  std::optional<Peer> peer;
  pid_t pid = 0;
  std::string why;  // there is no peer
};

PeerLook peerOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  KJ_SYSCALL(::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size));
  auto pid = credentials.pid;
  auto pidfd = pidfdOfPeer(fd, pid);
  if (!pidfd.ok()) return {{}, pid, std::string("pidfd_open: ") + std::strerror(pidfd.error)};
  auto process = readProcess(pid);
  // Read after the pidfd was had, and it lives: the number cannot have been given to another.
  if (!process || hasExited(pidfd.fd)) return {{}, pid, "the process has ended"};
  bool trusted = process->uid == 0 || process->uid == ::geteuid();
  process->uid = credentials.uid;
  return {Peer{*process, credentials.gid, trusted}, pid, ""};
}

void makeParent(const std::string& path) {
  auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  auto parent = path.substr(0, slash);
  if (::mkdir(parent.c_str(), 0755) < 0 && errno != EEXIST) {
    KJ_FAIL_SYSCALL("mkdir", errno, parent.c_str());
  }
}

}  // namespace

// --- a connection -------------------------------------------------------------------------------

Connection::Connection(LocalServer& server, ConnectionId id, kj::AutoCloseFd fd, Peer peer,
                       std::string refusal)
    : server_(server),
      id_(id),
      fd_(kj::mv(fd)),
      peer_(std::move(peer)),
      refusal_(std::move(refusal)),
      read_(server.port_, fd_, EV_READ, [this] { readable(); }),
      write_(server.port_, fd_, EV_WRITE, [this] { writable(); }) {
  write_.pause();
}

// One message: if there is another the loop says so again, and others have their turn in between.
void Connection::readable() {
  if (ended_) return;
  tsl_message message;
  auto packet = receivePacket(fd_, &message, sizeof(message));
  if (packet.kind == Packet::Kind::WouldBlock) return;
  if (packet.kind == Packet::Kind::Closed) return end();
  if (finishing_) return;  // it has been told why; nothing more is heard
  if (auto rejection = checkMessage(message, packet.size, packet.truncated, last_)) {
    return refuse(*rejection);
  }
  heard(message, packet.from ? packet.from->pid : peer_.process.identity.pid);
}

void Connection::heard(const tsl_message& message, pid_t speaker) {
  if (!refusal_.empty()) {
    reply(message.header.request, TSL_BUSY, refusal_);
    return finish();
  }
  if (message.header.type == TSL_HELLO) server_.visitors_.greeted(id_);
  if (isOrdered(message.header.type)) last_ = message.header.request;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions(
                      [&] { server_.handler_.received(*this, message, speaker); })) {
    server_.log_.error(Line("local-request-failed")
                           .add("pid", std::int64_t(peer_.process.identity.pid))
                           .add("why", e->getDescription().cStr()));
    if (message.header.type != TSL_CANCEL) {  // its number is the acquire's, which goes on waiting
      reply(message.header.request, TSL_INTERNAL, e->getDescription().cStr());
    }
  }
}

void Connection::refuse(const Rejection& rejection) {
  server_.complain(server_.nonsense_, Line("local-message-refused")
                                          .add("pid", std::int64_t(peer_.process.identity.pid))
                                          .add("uid", std::int64_t(peer_.process.uid))
                                          .add("why", rejection.why));
  reply(rejection.request, rejection.status, rejection.why);
  finish();
}

void Connection::send(tsl_message message, kj::AutoCloseFd fd) {
  if (ended_) return;
  message.header.version = version_;
  out_.push_back({message, kj::mv(fd)});
  if (out_.size() > kMaxQueued || !flush()) end();
}

void Connection::reply(std::uint64_t request, const tsl_reply& reply, kj::AutoCloseFd fd) {
  tsl_message message{};
  message.header = {TSL_MAGIC, TSL_VERSION, TSL_REPLY, request};
  message.u.reply = reply;
  send(message, kj::mv(fd));
}

void Connection::reply(std::uint64_t request, tsl_status status, std::string_view detail) {
  tsl_reply r{};
  r.status = status;
  auto text = printable(detail);
  std::memcpy(r.detail, text.data(), std::min(text.size(), sizeof(r.detail) - 1));
  reply(request, r);
}

void Connection::writable() {
  write_.pause();
  if (!flush()) end();
}

bool Connection::flush() {
  while (!out_.empty()) {
    int fd = out_.front().fd.get();
    auto sent = sendPacket(fd_, &out_.front().message, sizeof(tsl_message), &fd, fd >= 0);
    if (sent == Sent::Closed) return false;
    if (sent == Sent::WouldBlock) {
      write_.resume();
      return true;
    }
    out_.pop_front();
  }
  return !finishing_;
}

void Connection::finish() {
  finishing_ = true;
  if (out_.empty()) end();
}

bool Connection::hungUp() const {
  pollfd p{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::end() {
  if (ended_) return;
  ended_ = true;
  read_.pause();
  write_.pause();
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { server_.handler_.closed(*this); })) {
    server_.log_.error(Line("local-close-failed").add("why", e->getDescription().cStr()));
  }
  server_.drop(id_);
}

// --- the server ---------------------------------------------------------------------------------

LocalServer::LocalServer(LibeventPort& port, kj::AutoCloseFd listener, VisitorLimits limits,
                         LocalHandler& handler, Log& log)
    : port_(port),
      handler_(handler),
      log_(log),
      listener_(kj::mv(listener)),
      accept_(port, listener_, EV_READ, [this] { acceptAll(); }),
      visitors_(port.timer(), limits, [this](ConnectionId id) { overstayed(id); }),
      tasks_(*this) {}

Connection* LocalServer::find(ConnectionId id) {
  auto it = connections_.find(id);
  return it == connections_.end() ? nullptr : it->second.get();
}

void LocalServer::acceptAll() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    if (!acceptOne()) return;
  }
}

// False: nobody waits, or nobody can be taken in now. Most likely no descriptors are left then, and
// those in the backlog wait rather than the loop spinning on them.
bool LocalServer::acceptOne() {
  bool more = false;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { more = acceptInto(); })) {
    pauseAccepting(e->getDescription().cStr());
  }
  return more;
}

bool LocalServer::acceptInto() {
  if (accepted_.get() < 0) {
    auto fd = acceptSeqpacket(listener_);
    if (!fd) return false;
    accepted_ = kj::mv(*fd);
  }
  auto look = peerOf(accepted_);
  auto fd = kj::mv(accepted_);
  if (!look.peer) {
    complain(strangers_,
             Line("local-peer-refused").add("pid", std::int64_t(look.pid)).add("why", look.why));
    return true;
  }
  welcome(kj::mv(fd), std::move(*look.peer));
  return true;
}

void LocalServer::welcome(kj::AutoCloseFd fd, Peer peer) {
  ConnectionId id{++lastId_};
  auto uid = peer.process.uid;
  auto welcome = visitors_.arrive(id, uid);
  if (welcome != Visitors::Welcome::Served) {
    complain(crowds_, Line("local-connection-refused")
                          .add("pid", std::int64_t(peer.process.identity.pid))
                          .add("uid", std::int64_t(uid))
                          .add("why", visitors_.why(uid)));
  }
  if (welcome == Visitors::Welcome::Ignored) return;
  auto refusal = welcome == Visitors::Welcome::Refused ? visitors_.why(uid) : std::string();
  connections_[id] =
      std::make_unique<Connection>(*this, id, kj::mv(fd), std::move(peer), std::move(refusal));
}

void LocalServer::overstayed(ConnectionId id) {
  auto* connection = find(id);
  if (!connection) return visitors_.left(id);  // nothing could be made of it
  const auto& process = connection->peer().process;
  complain(silences_, Line("local-connection-silent")
                          .add("pid", std::int64_t(process.identity.pid))
                          .add("uid", std::int64_t(process.uid)));
  connection->end();
}

void LocalServer::complain(Throttle& about, Line line) {
  if (about.admits(line)) log_.warning(line);
}

void LocalServer::stopListening() {
  stopped_ = true;
  accept_.pause();
}

void LocalServer::pauseAccepting(const char* why) {
  paused_ = true;
  accept_.pause();
  auto& timer = port_.timer();
  tasks_.add(timer.afterDelay(kPause).then([this] { resumeAccepting(); }));
  complain(pauses_, Line("local-accept-paused")
                        .add("connections", std::uint64_t(connections_.size()))
                        .add("why", why));
}

// One that was accepted and is still unknown wakes nobody: it is looked at again here.
void LocalServer::resumeAccepting() {
  if (!paused_ || stopped_) return;
  paused_ = false;
  accept_.resume();
  if (accepted_.get() >= 0) acceptAll();
}

void LocalServer::taskFailed(kj::Exception&& exception) {
  log_.error(Line("local-server-failed").add("why", exception.getDescription().cStr()));
}

void LocalServer::drop(ConnectionId id) {
  auto it = connections_.find(id);
  if (it == connections_.end()) return;
  visitors_.left(id);
  ended_.push_back(std::move(it->second));
  connections_.erase(it);
  if (ended_.size() > 1) return;
  tasks_.add(kj::evalLater([this] { reap(); }));
}

void LocalServer::reap() {
  ended_.clear();
  resumeAccepting();
}

kj::AutoCloseFd listenAt(const std::string& path) {
  makeParent(path);
  return listenSeqpacket(path, kSocketMode);
}

kj::AutoCloseFd inheritedListener() {
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  if (!pid || !count || std::atoi(pid) != ::getpid()) return {};
  KJ_REQUIRE(std::atoi(count) == 1, "systemd passed several sockets; one is wanted", count);
  KJ_SYSCALL(::fcntl(kFirstInherited, F_SETFD, FD_CLOEXEC));
  KJ_SYSCALL(::fcntl(kFirstInherited, F_SETFL, O_NONBLOCK));
  wantCredentials(
      kFirstInherited);  // and PassCredentials=yes in the socket unit, for who came before
  return kj::AutoCloseFd(kFirstInherited);
}

}  // namespace ts::node
