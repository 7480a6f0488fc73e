// tsnoded: the daemon of one node. Wires everything together; every decision is elsewhere.
#include <kj/debug.h>
#include <kj/exception.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "backend/cuda_backend.h"
#include "backend/none_backend.h"
#include "config/address.h"
#include "config/config.h"
#include "config/users.h"
#include "device/inventory.h"
#include "metrics/http_server.h"
#include "node/arguments.h"
#include "node/capabilities.h"
#include "node/node.h"
#include "node/owner.h"
#include "node/reload.h"
#include "reactor/libevent_io.h"
#include "reactor/service_manager.h"
#include "reactor/signals.h"

using namespace ts;
using namespace ts::node;

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitConfig = 78;

// A participant costs two descriptors: its connection and its pidfd.
void raiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// It runs all the same: turns alone need none of them.
void tellMissing(Log& log) {
  std::string names;
  for (const auto& c : missingCapabilities())
    names += (names.empty() ? "" : " ") + std::string(c.name);
  if (names.empty()) return;
  log.warning(Line("no-capability")
                  .add("missing", names)
                  .add("why",
                       "jobs of other users may not be moved or ended; start tsnoded as "
                       "root, see tsctl doctor"));
}

std::unique_ptr<Inventory> openInventory(const NodeConfig& config, const std::string& name) {
  if (config.devices > 0) return declaredInventory(config.devices, name);
  return openNvml();
}

// Without devices by configuration there is a driver, or should be.
struct OwnBackends {
  NoneBackend none;
  std::unique_ptr<CudaBackend> cuda;

  OwnBackends(const NodeConfig& config, Inventory& inventory) {
    if (config.devices > 0) return;
    cuda = std::make_unique<CudaBackend>(
        cuda::openDriver(), [&inventory](pid_t pid) { return bytesOf(inventory, pid); });
  }
  Backends byName() {
    Backends out{{"none", &none}};
    if (cuda) out["cuda"] = cuda.get();
    return out;
  }
  static std::optional<std::uint64_t> bytesOf(Inventory& inventory, pid_t pid) {
    std::uint64_t sum = 0;
    for (const auto& gpu : inventory.gpus()) {
      auto processes = inventory.processes(gpu.index);
      if (!processes) return std::nullopt;
      for (const auto& p : *processes) {
        if (p.pid != pid) continue;
        if (!p.bytes) return std::nullopt;
        sum += *p.bytes;
      }
    }
    return sum;
  }
};

// Written whole and then named, so that whoever waits for it reads all of it.
void announce(const std::string& path, const NodeConfig& config, const std::string& name) {
  if (path.empty()) return;
  {
    std::ofstream out(path + ".new");
    out << "node=" << name << "\nsocket=" << config.socket << "\npid=" << ::getpid() << "\n";
  }
  KJ_SYSCALL(::rename((path + ".new").c_str(), path.c_str()));
}

std::unique_ptr<HttpServer> serveHttp(LibeventPort& port, Node& node, const std::string& address) {
  if (address.empty()) return nullptr;
  HostPort at;
  std::string why;
  if (!parseHostPort(address, at, why)) kj::throwFatalException(sentence("http: " + why));
  return std::make_unique<HttpServer>(
      port.base(), at.host, at.port,
      HttpPages{.metrics = [&node] { return node.renderMetrics(); },
                .status = nullptr,
                .health = [&node] { return node.link().isUp() ? "" : node.link().whyDown(); }});
}

kj::Promise<void> reloadForever(Signal& hangUp, NodeConfig& config, const std::string& path,
                                Node& node, Log& log) {
  return hangUp.next().then([&] {
    if (reload(config, path, log)) node.reconfigure(config);
    return reloadForever(hangUp, config, path, node, log);
  });
}

// A call of a driver that hangs for good cannot be ended, and must not keep the daemon. Nothing is
// lost by leaving at once: the journal is complete after each step.
class LastCalls {
public:
  LastCalls(Workers& workers, Log& log) : workers_(workers), log_(log) {}
  LastCalls(const LastCalls&) = delete;
  LastCalls& operator=(const LastCalls&) = delete;
  ~LastCalls() {
    if (workers_.drain(kLastCalls)) return;
    log_.error(Line("calls-abandoned").add("running", std::uint64_t(workers_.busy())));
    ::_exit(kExitFailed);
  }

private:
  static constexpr std::chrono::seconds kLastCalls{5};
  Workers& workers_;
  Log& log_;
};

void tellReady(ServiceManager& manager, Log& log) {
  if (auto why = manager.ready(); !why.empty())
    log.warning(Line("no-service-manager").add("why", why));
}

// No state is left half moved, unless a call runs past its deadline.
void stop(Node& node, const NodeConfig& config, kj::Timer& timer, Log& log, kj::WaitScope& scope) {
  auto limit = std::max(config.saveDeadline, config.restoreDeadline).count() * kj::MICROSECONDS;
  auto late = timer.afterDelay(limit).then([&] {
    for (const auto& order : node.orders().overdue()) {
      log.error(Line("stopped-early").add("running", order));
    }
  });
  node.stop().exclusiveJoin(kj::mv(late)).wait(scope);
}

int serve(NodeConfig config, const Arguments& arguments, uid_t masterUid) {
  bool known = false;
  Log log(parseLevel(config.logLevel, known));
  auto environment = takeServiceEnvironment();
  raiseDescriptorLimit();
  keepListedCapabilities();
  tellMissing(log);
  ignoreSigpipe();
  auto base = newEventBase();
  LibeventPort port(base.get());
  kj::EventLoop loop(port);
  kj::WaitScope scope(loop);
  auto low = newLibeventIo(port);
  auto io = kj::newAsyncIoProvider(*low);

  auto name = config.name.empty() ? hostName() : config.name;
  auto inventory = openInventory(config, name);
  OwnBackends backends(config, *inventory);
  auto auth = config.auth == "none" ? newNoAuth() : newMungeAuth();
  Workers workers;
  LastCalls lastCalls(workers, log);
  Journal journal(config.stateDir);
  if (auto why = ownRecords(journal, name); !why.empty()) {
    std::cerr << "tsnoded: " << why << "\n";
    return kExitConfig;
  }
  auto listener = inheritedListener();
  if (listener.get() < 0) listener = listenAt(config.socket);
  Signal terminate(port, SIGTERM);
  Signal interrupt(port, SIGINT);
  Signal hangUp(port, SIGHUP);
  ServiceManager manager(std::move(environment), port.timer());

  Node node(config,
            {.port = port,
             .network = io->getNetwork(),
             .workers = workers,
             .inventory = *inventory,
             .backends = backends.byName(),
             .auth = *auth,
             .masterUid = masterUid,
             .log = log,
             .version = TIMESLICE_VERSION},
            journal);
  auto reloading = reloadForever(hangUp, config, arguments.config, node, log)
                       .eagerlyEvaluate([&log](kj::Exception&& e) {
                         log.error(Line("reload-stopped").add("why", sentenceOf(e)));
                       });
  auto http = serveHttp(port, node, config.http);
  node.start(kj::mv(listener)).wait(scope);
  announce(arguments.announce, config, name);
  tellReady(manager, log);
  terminate.next().exclusiveJoin(interrupt.next()).wait(scope);
  manager.stopping();
  log.info(Line("stopping").add("node", name));
  stop(node, config, port.timer(), log, scope);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto arguments = parseArguments(argc, argv);
  if (arguments.exit) {
    (*arguments.exit == 0 ? std::cout : std::cerr) << arguments.text;
    return *arguments.exit == 0 ? 0 : kExitUsage;
  }
  auto config = loadNodeConfig(arguments.config);
  for (const auto& e : config.errors) std::cerr << e.text << "\n";
  if (!config.ok()) return kExitConfig;
  auto masterUid = uidNamed(config.value.masterUser);
  if (!masterUid && config.value.auth == "munge") {
    std::cerr << unknownMasterUser(config.value.masterUser, arguments.config) << "\n";
    return kExitConfig;
  }
  if (arguments.checkConfig) {
    std::cout << arguments.config << ": fine\n";
    return 0;
  }
  int result = kExitFailed;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions(
                      [&] { result = serve(config.value, arguments, masterUid.value_or(0)); })) {
    std::cerr << "tsnoded: " << sentenceOf(*e) << "\n";
    return kExitFailed;
  }
  return result;
}
