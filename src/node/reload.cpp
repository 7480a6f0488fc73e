#include "node/reload.h"

namespace ts::node {
namespace {

template <class T>
void keep(const T& ours, T& theirs, const char* key, Log& log) {
  if (ours == theirs) return;
  log.warning(Line("needs-restart").add("key", key));
  theirs = ours;
}

}  // namespace

bool reload(NodeConfig& config, const std::string& path, Log& log) {
  auto loaded = loadNodeConfig(path);
  for (const ConfigError& error : loaded.errors) {
    log.error(Line("bad-config").add("kept", "the configuration as it was").add("why", error.text));
  }
  if (!loaded.ok()) return false;
  NodeConfig& next = loaded.value;
  keep(config.name, next.name, "name", log);
  keep(config.master, next.master, "master", log);
  keep(config.socket, next.socket, "socket", log);
  keep(config.connectionsPerUser, next.connectionsPerUser, "connections_per_user", log);
  keep(config.helloDeadline, next.helloDeadline, "hello_deadline", log);
  keep(config.stateDir, next.stateDir, "state_dir", log);
  keep(config.http, next.http, "http", log);
  keep(config.auth, next.auth, "auth", log);
  keep(config.masterUser, next.masterUser, "master_user", log);
  keep(config.backend, next.backend, "backend", log);
  keep(config.devices, next.devices, "devices", log);
  keep(config.freedDeadline, next.freedDeadline, "freed_deadline", log);
  keep(config.saveDeadline, next.saveDeadline, "save_deadline", log);
  keep(config.restoreDeadline, next.restoreDeadline, "restore_deadline", log);
  keep(config.silentLimit, next.silentLimit, "silent_limit", log);
  keep(config.saveBeforeKill, next.saveBeforeKill, "save_before_kill", log);
  keep(config.orderDelay, next.orderDelay, "order_delay", log);
  config = std::move(next);
  bool known = true;  // the configuration has checked the word
  log.setThreshold(parseLevel(config.logLevel, known));
  log.info(Line("reloaded").add("file", path));
  return true;
}

}  // namespace ts::node
