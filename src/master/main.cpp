// tsmasterd: the wiring diagram.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "config/address.h"
#include "master/master.h"
#include "master/options.h"
#include "master/reload.h"
#include "master/status.h"
#include "metrics/http_server.h"
#include "reactor/service_manager.h"
#include "reactor/signals.h"

using namespace ts;

namespace {

constexpr int kBadConfig = 78;

// What KJ has to say goes where everything goes.
class KjLog final : public kj::ExceptionCallback {
public:
  explicit KjLog(Log& log) : log_(log) {}
  void logMessage(kj::LogSeverity severity, const char* file, int line, int depth,
                  kj::String&& text) override {
    if (severity < kj::LogSeverity::WARNING) return;
    log_.warning(
        Line("kj").add("file", file).add("line", std::int64_t(line)).add("text", text.cStr()));
  }

private:
  Log& log_;
};

struct Announcement {
  Log& log;
  std::string text;
  void add(const char* what, const std::string& address) {
    log.info(Line("listening").add("what", what).add("address", address));
    text += std::string(what) + "=" + address + "\n";
  }
  // A reader sees all of it or nothing.
  void publish(const std::string& path) const {
    if (path.empty()) return;
    std::string temporary = path + ".new";
    std::ofstream(temporary) << text;
    std::filesystem::rename(temporary, path);
  }
};

std::unique_ptr<Auth> newAuth(const MasterConfig& config) {
  return config.auth == "munge" ? newMungeAuth() : newNoAuth();
}

void listen(Master& master, const MasterConfig& config, kj::WaitScope& scope, Announcement& said) {
  for (const std::string& address : config.listen)
    said.add("rpc", master.listeners.tcp(address, scope));
  if (!config.socket.empty()) said.add("socket", master.listeners.unixSocket(config.socket));
}

std::unique_ptr<HttpServer> serveHttp(LibeventPort& port, Master& master,
                                      const std::string& address, Announcement& said) {
  if (address.empty()) return nullptr;
  HostPort at;
  std::string why;
  if (!parseHostPort(address, at, why)) kj::throwFatalException(sentence("http: " + why));
  auto http = std::make_unique<HttpServer>(
      port.base(), at.host, at.port,
      HttpPages{.metrics = [&master] { return master.metrics.render(); },
                .status = [&master] { return statusJson(master.operators); },
                .health = [] { return std::string(); }});
  said.add("http", address.substr(0, address.rfind(':')) + ":" + std::to_string(http->port()));
  return http;
}

kj::Promise<void> reloadForever(Signal& hangUp, MasterConfig& config, const std::string& path,
                                Master& master, Workers& workers) {
  return hangUp.next()
      .then([&path, &workers] {
        return workers.call<Loaded<MasterConfig>>([path] { return loadMasterConfig(path); });
      })
      .then([&hangUp, &config, &path, &master, &workers](Loaded<MasterConfig> loaded) {
        if (reload(config, std::move(loaded), path, master.events.log()))
          master.shell.configureAgain();
        return reloadForever(hangUp, config, path, master, workers);
      });
}

void tellReady(ServiceManager& manager, Log& log) {
  if (auto why = manager.ready(); !why.empty())
    log.warning(Line("no-service-manager").add("why", why));
}

int serve(const Options& options, MasterConfig& config, ServiceEnvironment environment, Log& log) {
  OwnEventBase base = newEventBase();
  LibeventPort port(base.get());
  kj::EventLoop loop(port);
  kj::WaitScope scope(loop);
  Signal terminate(port, SIGTERM);
  Signal interrupt(port, SIGINT);
  Signal hangUp(port, SIGHUP);
  ServiceManager manager(std::move(environment), port.timer());

  auto auth = newAuth(config);
  Store store(config.database);
  Workers workers;
  Master master({port, config, store, workers, *auth, log, TIMESLICE_VERSION});
  Announcement said{log, ""};
  listen(master, config, scope, said);
  auto http = serveHttp(port, master, config.http, said);
  log.info(Line("ready")
               .add("version", TIMESLICE_VERSION)
               .add("generation", std::uint64_t(master.life.generation().number)));
  said.publish(options.announce);
  tellReady(manager, log);

  auto reloads = reloadForever(hangUp, config, options.config, master, workers);
  terminate.next()
      .exclusiveJoin(interrupt.next())
      .exclusiveJoin(kj::mv(reloads))
      .exclusiveJoin(master.shell.whenBroken())
      .wait(scope);
  manager.stopping();
  log.info(Line("stopping"));
  if (!config.socket.empty()) std::filesystem::remove(config.socket);
  master.history.storeNow();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int exitCode = 0;
  auto options = parseOptions(argc, argv, TIMESLICE_VERSION, exitCode);
  if (!options) return exitCode;
  auto loaded = loadMasterConfig(options->config);
  for (const ConfigError& error : loaded.errors) std::fprintf(stderr, "%s\n", error.text.c_str());
  if (!loaded.ok()) return kBadConfig;
  if (std::string why = missingFolder(loaded.value.database); !why.empty()) {
    std::fprintf(stderr, "%s: %s\n", options->config.c_str(), why.c_str());
    return kBadConfig;
  }
  if (options->checkConfig) {
    std::printf("%s: fine\n", options->config.c_str());
    return 0;
  }
  Log log(levelOf(loaded.value));
  KjLog kjLog(log);
  ignoreSigpipe();
  try {
    return serve(*options, loaded.value, takeServiceEnvironment(), log);
  } catch (const kj::Exception& e) {
    log.error(Line("failed").add("why", sentenceOf(e)));
  } catch (const std::exception& e) {
    log.error(Line("failed").add("why", e.what()));
  }
  return 1;
}
