// What one RPC between two processes over loopback TCP costs: on our loop, on KJ's own, and the
// floor, raw sockets with as many bytes.
#include <capnp/rpc-twoparty.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench_common/figures.h"
#include "bench_common/process.h"
#include "bench_common/run.h"
#include "reactor/libevent_io.h"
#include "timeslice.capnp.h"
#include "wire/link.h"

using namespace ts;
using namespace ts::bench;

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
    die(std::string("cannot listen on a loopback port: ") + std::strerror(errno));
  }
  return fd;
}

struct Row {
  const char* name;
  Spread us;
  double cpuUs;  // of the caller, for one
};

Row measure(const char* name, int calls, const std::function<void()>& call) {
  for (int i = 0; i < kWarmUp; ++i) call();
  std::vector<double> took;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < calls; ++i) {
    goOn();
    const std::int64_t start = nowNs();
    call();
    took.push_back(double(nowNs() - start) / 1000);
  }
  ::getrusage(RUSAGE_SELF, &after);
  auto us = [](const timeval& t) { return double(t.tv_sec) * 1e6 + double(t.tv_usec); };
  const double cpu =
      us(after.ru_utime) + us(after.ru_stime) - us(before.ru_utime) - us(before.ru_stime);
  return {name, spreadOf(took), cpu / calls};
}

void noDelay(int fd) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void noDelay(kj::AsyncIoStream& stream) {
  int on = 1;
  stream.setsockopt(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Row raw(int calls) {
  sockaddr_in address;
  int listener = listenLoopback(address);
  Process server([&] {
    int fd = ::accept(listener, nullptr, nullptr);
    noDelay(fd);
    char buffer[256];
    ssize_t n;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0 && ::write(fd, buffer, size_t(n)) == n) {
    }
  });
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    die(std::string("cannot connect to a loopback port: ") + std::strerror(errno));
  noDelay(fd);
  const Row row = measure("raw sockets", calls, [&] {
    char buffer[128] = {};
    if (::write(fd, buffer, sizeof buffer) < 0 || ::read(fd, buffer, sizeof buffer) <= 0)
      die("the other end of the raw socket is gone");
  });
  ::close(fd);
  ::close(listener);
  return row;
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
Row rpc(const char* name, int calls) {
  sockaddr_in address;
  int listener = listenLoopback(address);
  Process server([&] {
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
  const Row row =
      measure(name, calls, [&] { session.heartbeatRequest().send().wait(loop.waitScope); });
  ::close(listener);
  return row;
}

void print(const std::vector<Row>& rows) {
  for (const Row& r : rows) {
    std::printf("%-22s median %6.1f us   p99 %6.1f us   caller's cpu %5.1f us\n", r.name,
                r.us.median, r.us.p99, r.cpuUs);
  }
}

void printJson(const std::vector<Row>& rows, int calls) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& r : rows) {
    list.push_back({{"name", r.name},
                    {"median_us", r.us.median},
                    {"p99_us", r.us.p99},
                    {"caller_cpu_us", r.cpuUs}});
  }
  const nlohmann::json out = {{"bench", "rtt"}, {"calls", calls}, {"rows", list}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One call between two processes over loopback.", "bench rtt");
  int calls = 20'000;
  bool asJson = false;
  app.add_option("--calls", calls, "calls to measure")->check(CLI::Range(1, 10'000'000));
  app.add_flag("--json", asJson, "one JSON object instead of a table");
  app.footer("Examples:\n  tools/bench rtt\n  tools/bench rtt --calls 1000 --json");
  return runBench(app, argc, argv, [&] {
    const std::vector<Row> rows = {raw(calls), rpc<Ours>("rpc on our loop", calls),
                                   rpc<Kjs>("rpc on KJ's own loop", calls)};
    asJson ? printJson(rows, calls) : print(rows);
  });
}
