// What one RPC between two processes over loopback TCP costs: on our loop, on KJ's own, and the floor,
// raw sockets with as many bytes.
//
// usage: bench_rtt [CALLS]
#include <capnp/rpc-twoparty.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "reactor/libevent_io.h"
#include "timeslice.capnp.h"
#include "wire/link.h"

using namespace ts;

namespace {

constexpr int kWarmUp = 1000;

class Echo final : public wire::NodeSession::Server {
  kj::Promise<void> heartbeat(HeartbeatContext) override { return kj::READY_NOW; }
};

int listenLoopback(sockaddr_in& address) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd, 8) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("listen");
    std::exit(1);
  }
  return fd;
}

// `server` runs in a process of its own that ends with this one.
class Child {
public:
  explicit Child(const std::function<void()>& server) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    server();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

private:
  pid_t pid_;
};

void report(const char* name, int calls, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < kWarmUp; ++i) call();
  std::vector<double> took;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < calls; ++i) {
    auto start = Clock::now();
    call();
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  ::getrusage(RUSAGE_SELF, &after);
  auto us = [](const timeval& t) { return double(t.tv_sec) * 1e6 + double(t.tv_usec); };
  double cpu = us(after.ru_utime) + us(after.ru_stime) - us(before.ru_utime) - us(before.ru_stime);
  std::sort(took.begin(), took.end());
  std::printf("%-22s median %6.1f us   p99 %6.1f us   caller's cpu %5.1f us\n", name,
              took[took.size() / 2], took[took.size() * 99 / 100], cpu / calls);
  std::fflush(stdout);
}

void noDelay(int fd) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void noDelay(kj::AsyncIoStream& stream) {
  int on = 1;
  stream.setsockopt(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void raw(int calls) {
  sockaddr_in address;
  int listener = listenLoopback(address);
  Child server([&] {
    int fd = ::accept(listener, nullptr, nullptr);
    noDelay(fd);
    char buffer[256];
    ssize_t n;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0 && ::write(fd, buffer, size_t(n)) == n) {
    }
  });
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::exit(1);
  noDelay(fd);
  report("raw sockets", calls, [&] {
    char buffer[128] = {};
    if (::write(fd, buffer, sizeof buffer) < 0 || ::read(fd, buffer, sizeof buffer) <= 0) std::exit(1);
  });
  ::close(fd);
  ::close(listener);
}

// A loop and its sockets: ours or KJ's.
struct Ours {
  OwnEventBase base = newEventBase();
  LibeventPort port{base.get()};
  kj::EventLoop loop{port};
  kj::WaitScope waitScope{loop};
  kj::Own<kj::LowLevelAsyncIoProvider> low = newLibeventIo(port);
};
struct Kjs {
  kj::AsyncIoContext context = kj::setupAsyncIo();
  kj::WaitScope& waitScope = context.waitScope;
  kj::Own<kj::LowLevelAsyncIoProvider>& low = context.lowLevelProvider;
};

template <class Loop>
void rpc(const char* name, int calls) {
  sockaddr_in address;
  int listener = listenLoopback(address);
  Child server([&] {
    Loop loop;
    auto receiver = loop.low->wrapListenSocketFd(kj::AutoCloseFd(::dup(listener)));
    auto stream = receiver->accept().wait(loop.waitScope);
    noDelay(*stream);
    Link link(kj::mv(stream), Link::Side::Listener, kj::heap<Echo>());
    link.whenClosed().wait(loop.waitScope);
  });
  Loop loop;
  kj::AutoCloseFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto stream = loop.low
                    ->wrapConnectingSocketFd(kj::mv(fd), reinterpret_cast<sockaddr*>(&address),
                                             sizeof address)
                    .wait(loop.waitScope);
  noDelay(*stream);
  Link link(kj::mv(stream), Link::Side::Caller);
  auto session = link.peer<wire::NodeSession>();
  report(name, calls, [&] { session.heartbeatRequest().send().wait(loop.waitScope); });
  ::close(listener);
}

}  // namespace

int main(int argc, char** argv) {
  int calls = argc > 1 ? std::atoi(argv[1]) : 20'000;
  if (calls <= 0) {
    std::fprintf(stderr, "usage: bench_rtt [CALLS]\n");
    return 2;
  }
  raw(calls);
  rpc<Ours>("rpc on our loop", calls);
  rpc<Kjs>("rpc on KJ's own loop", calls);
}
