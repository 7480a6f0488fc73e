#include "master/listeners.h"

#include <arpa/inet.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "master/alarm.h"
#include "reactor/descriptors.h"
#include "reactor/fd_stream.h"
#include "reactor/stale_socket.h"
#include "wire/link.h"

namespace ts {
namespace {

std::string addressOf(int fd) {
  sockaddr_storage addr{};
  socklen_t size = sizeof(addr);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&addr), &size) != 0) return "?";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (addr.ss_family == AF_INET) {
    auto& in = reinterpret_cast<sockaddr_in&>(addr);
    ::inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (addr.ss_family == AF_INET6) {
    auto& in = reinterpret_cast<sockaddr_in6&>(addr);
    ::inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  return "unix";
}

std::optional<uid_t> userOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.uid;
}

// Whoever shares it shares the room for those who have not proved themselves.
std::string sourceOf(const Peer& peer) {
  if (peer.uid) return "uid " + std::to_string(*peer.uid);
  return peer.address.substr(0, peer.address.rfind(':'));
}

sockaddr_un unixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KJ_REQUIRE(path.size() < sizeof(address.sun_path), "a socket's path is too long", path.c_str());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

kj::AutoCloseFd newUnixSocket() {
  int fd;
  KJ_SYSCALL(fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return kj::AutoCloseFd(fd);
}

}  // namespace

// One connection, from accept to its end. --------------------------------------------------------

class Listeners::Connection {
public:
  Connection(Listeners& owner, kj::Own<kj::AsyncIoStream> stream, Peer peer)
      : owner_(owner),
        address_(peer.address),
        source_(sourceOf(peer)),
        ending_(std::make_shared<Ending>()),
        ended_(nullptr),
        inTime_(nullptr) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    ending_->fulfiller = kj::mv(paf.fulfiller);
    ended_ = kj::mv(paf.promise);
    auto greeted = kj::newPromiseAndFulfiller<void>();
    ending_->greeted = kj::mv(greeted.fulfiller);
    inTime_ = kj::mv(greeted.promise);
    peer.hangUp = [ending = ending_](std::string why) { ending->end(std::move(why)); };
    auto* reader = dynamic_cast<FdStream*>(stream.get());
    if (reader != nullptr) reader->readOnlyWhileRead(true);
    peer.entered = [this, ending = ending_, reader](Role role) {
      if (ending->gone) return;
      ending->proven = true;
      ending->greeted->fulfill();
      owner_.waitsNoMore(*this);
      // A node asks as well as it is asked.
      if (reader != nullptr && role == Role::Node) reader->readOnlyWhileRead(false);
    };
    link_ = kj::heap<Link>(kj::mv(stream), Link::Side::Listener,
                           newEntrance(owner.house_, std::move(peer)));
    ++owner.connections_;
    owner.waitsToEnter(*this);
  }
  ~Connection() noexcept(false) {
    --owner_.connections_;
    ending_->gone = true;
    owner_.waitsNoMore(*this);
    tellWhy();
  }
  KJ_DISALLOW_COPY(Connection);

  const std::string& source() const { return source_; }
  void end(std::string why) { ending_->end(std::move(why)); }

  kj::Promise<void> run() {
    return link_->whenClosed().exclusiveJoin(kj::mv(ended_)).exclusiveJoin(overstayed());
  }

private:
  // Outlives the connection where a session still holds it.
  struct Ending {
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
    kj::Own<kj::PromiseFulfiller<void>> greeted;
    std::string why;
    bool proven = false;
    bool gone = false;
    void end(std::string reason) {
      if (why.empty()) why = std::move(reason);
      fulfiller->fulfill();
    }
  };

  void tellWhy() {
    if (ending_->why.empty()) return;
    Line line("hang-up");
    line.add("address", address_).add("why", ending_->why);
    if (ending_->proven || owner_.house_.hangUps.admits(line)) owner_.house_.log.info(line);
  }

  // The timer is gone once the peer has proved itself: a stale one would wake the loop.
  kj::Promise<void> overstayed() {
    constexpr auto deadline = kGreetDeadline.count() * kj::MICROSECONDS;
    auto late = owner_.port_.timer().afterDelay(deadline).then([] { return true; });
    return inTime_.then([] { return false; })
        .exclusiveJoin(kj::mv(late))
        .then([this](bool late) -> kj::Promise<void> {
          if (!late) return kj::NEVER_DONE;
          ending_->end("did not prove itself in time");
          return kj::READY_NOW;
        });
  }

  Listeners& owner_;
  std::string address_;
  std::string source_;
  std::shared_ptr<Ending> ending_;
  kj::Promise<void> ended_;
  kj::Promise<void> inTime_;
  kj::Own<Link> link_;
};

// Accepting. -------------------------------------------------------------------------------------

Listeners::Listeners(LibeventPort& port, House& house, std::size_t mostUnproven)
    : port_(port),
      house_(house),
      low_(newLibeventIo(port)),
      io_(kj::newAsyncIoProvider(*low_)),
      mostUnproven_(affordable(mostUnproven)),
      tasks_(*this) {}

std::string Listeners::tcp(const std::string& address, kj::WaitScope& scope) {
  auto receiver = io_->getNetwork().parseAddress(address).wait(scope)->listen();
  std::string host = address.substr(0, address.rfind(':'));
  std::string bound = host + ":" + std::to_string(receiver->getPort());
  add(kj::mv(receiver), false);
  return bound;
}

std::string Listeners::unixSocket(const std::string& path) {
  removeStaleSocket(path, SOCK_STREAM);
  auto fd = newUnixSocket();
  auto address = unixAddress(path);
  // Everybody may connect: what they may do follows from who they are. The mode is that from the
  // start.
  mode_t before = ::umask(0111);
  int rc = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  int error = errno;
  ::umask(before);
  if (rc != 0)
    kj::throwFatalException(sentence("cannot listen on " + path + ": " + std::strerror(error)));
  KJ_SYSCALL(::listen(fd, SOMAXCONN));
  add(low_->wrapListenSocketFd(kj::mv(fd)), true);
  return "unix:" + path;
}

void Listeners::add(kj::Own<kj::ConnectionReceiver> receiver, bool local) {
  listeners_.push_back({kj::mv(receiver), local});
  tasks_.add(acceptFrom(listeners_.back()));
}

kj::Promise<void> Listeners::acceptFrom(Listener& listener) {
  return kj::evalNow([&] { return listener.receiver->accept(); })
      .then(
          [this, &listener](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<void> {
            take(listener, kj::mv(stream));
            return kj::READY_NOW;
          },
          [this](kj::Exception&& e) { return afterFailure(kj::mv(e)); })
      .then([this, &listener] { return acceptFrom(listener); });
}

// Out of descriptors, most likely: the connection stays in the backlog, so wait until some may have
// become free. Nobody is served by trying again at once, or by more than one line a second.
kj::Promise<void> Listeners::afterFailure(kj::Exception&& exception) {
  if (monotonicNow() - complainedAt_ > std::chrono::seconds(1)) {
    complainedAt_ = monotonicNow();
    house_.log.error(Line("accept-failed")
                         .add("connections", std::uint64_t(connections_))
                         .add("why", sentenceOf(exception)));
  }
  return port_.timer().afterDelay(100 * kj::MILLISECONDS);
}

void Listeners::take(Listener& listener, kj::Own<kj::AsyncIoStream> stream) {
  Peer peer;
  KJ_IF_MAYBE (fd, stream->getFd()) {
    peer.address = addressOf(*fd);
    if (listener.local) peer.uid = userOf(*fd);
  }
  auto connection = kj::heap<Connection>(*this, kj::mv(stream), std::move(peer));
  auto running = connection->run();
  tasks_.add(running.attach(kj::mv(connection)));
}

void Listeners::waitsToEnter(Connection& connection) {
  auto& waiting = unproven_[connection.source()];
  waiting.push_back(&connection);
  if (waiting.size() > mostUnproven_) {
    waiting.front()->end("too many of " + connection.source() + " have not proved themselves");
    waiting.pop_front();
  }
}

void Listeners::waitsNoMore(Connection& connection) {
  auto it = unproven_.find(connection.source());
  if (it == unproven_.end()) return;
  std::erase(it->second, &connection);
  if (it->second.empty()) unproven_.erase(it);
}

// One connection, or one listener, never all.
void Listeners::taskFailed(kj::Exception&& exception) {
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  Line line("connection-failed");
  line.add("why", sentenceOf(exception));
  if (house_.hangUps.admits(line)) house_.log.warning(line);
}

}  // namespace ts
