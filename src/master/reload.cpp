#include "master/reload.h"

namespace ts {
namespace {

template <class T>
void keep(const T& ours, T& theirs, const char* key, Log& log) {
  if (ours == theirs) return;
  log.warning(Line("needs-restart").add("key", key));
  theirs = ours;
}

}  // namespace

bool reload(MasterConfig& config, Loaded<MasterConfig> loaded, const std::string& path, Log& log) {
  for (const ConfigError& error : loaded.errors)
    log.error(Line("bad-config").add("kept", "the configuration as it was").add("why", error.text));
  if (!loaded.ok()) return false;
  MasterConfig& next = loaded.value;
  keep(config.listen, next.listen, "listen", log);
  keep(config.socket, next.socket, "socket", log);
  keep(config.http, next.http, "http", log);
  keep(config.database, next.database, "database", log);
  keep(config.auth, next.auth, "auth", log);
  keep(config.authNoneAnywhere, next.authNoneAnywhere, "auth_none_anywhere", log);
  config = std::move(next);
  log.setThreshold(levelOf(config));
  log.info(Line("reloaded").add("file", path));
  return true;
}

Level levelOf(const MasterConfig& config) {
  bool known = true;  // the configuration has checked the word
  return parseLevel(config.logLevel, known);
}

}  // namespace ts
