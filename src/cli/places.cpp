#include "cli/places.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "cli/failure.h"
#include "config/address.h"
#include "config/config.h"
#include "local/protocol.h"

namespace ts::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? "" : value;
}

// A path is its unix socket; a host alone has the usual port.
Place masterAt(const std::string& text, const std::string& from) {
  if (text.starts_with("unix:")) return {text, from};
  if (text.starts_with('/')) return {"unix:" + text, from};
  HostPort parsed;
  std::string why;
  bool bare = text.find(':') == std::string::npos || text.ends_with(']');
  std::string full = bare && !text.empty() ? text + ":6830" : text;
  if (!parseHostPort(full, parsed, why)) {
    throw Failure(Exit::Usage, from + ": " + why + ", or the path of the master's socket");
  }
  return {full, from};
}

std::optional<NodeConfig> nodeConfig(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  auto loaded = loadNodeConfig(path);
  if (loaded.ok()) return loaded.value;
  std::string all;
  for (const ConfigError& error : loaded.errors) all += (all.empty() ? "" : "\n") + error.text;
  throw Failure(Exit::BadConfig, all);
}

Place findMaster(const Options& options, const std::optional<NodeConfig>& config) {
  if (!options.master.empty()) return masterAt(options.master, "--master");
  std::string said = environment("TIMESLICE_MASTER");
  if (!said.empty()) return masterAt(said, "TIMESLICE_MASTER");
  std::string here = MasterConfig().socket;
  if (::access(here.c_str(), R_OK | W_OK) == 0)
    return {"unix:" + here, "its socket on this machine"};
  if (config && !config->master.empty()) return {config->master, options.nodeConfig};
  return {NodeConfig().master, kDefaultPlace};
}

bool onThisMachine(const std::string& address) {
  HostPort parsed;
  std::string ignored;
  return address.starts_with("unix:") ||
         (parseHostPort(address, parsed, ignored) && isLoopbackHost(parsed.host));
}

Place findNode(const Options& options, const std::optional<NodeConfig>& config) {
  if (!options.nodeSocket.empty()) return {options.nodeSocket, "--socket"};
  std::string said = environment("TIMESLICE_SOCKET");
  if (!said.empty()) return {said, "TIMESLICE_SOCKET"};
  if (config) return {config->socket, options.nodeConfig};
  return {TSL_SOCKET_DEFAULT, kDefaultPlace};
}

}  // namespace

Places findPlaces(const Options& options) {
  auto config = nodeConfig(options.nodeConfig);
  Places places;
  places.master = findMaster(options, config);
  places.node = findNode(options, config);
  places.auth = !options.auth.empty() ? options.auth : config ? config->auth : "munge";
  places.authByMaster = options.auth.empty() && !config && onThisMachine(places.master.address);
  places.masterUser = config ? config->masterUser : NodeConfig().masterUser;
  places.masterUserFrom = config ? options.nodeConfig : kDefaultPlace;
  return places;
}

}  // namespace ts::cli
