#include "config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "config/address.h"
#include "config/name.h"
#include "config/table_reader.h"

namespace ts {
namespace {

using namespace std::chrono_literals;

constexpr microseconds kNever{0};
constexpr microseconds kDay = 24h;

// An address key: "" stands for "none" where that is allowed.
void checkAddress(TableReader& table, std::string_view key, const std::string& text,
                  bool optional) {
  HostPort parsed;
  std::string why;
  if (optional && text.empty()) return;
  if (!parseHostPort(text, parsed, why)) table.fail(key, std::string(key) + ": " + why);
}

void checkPath(TableReader& table, std::string_view key, const std::string& path, bool optional) {
  if (optional && path.empty()) return;
  if (!path.starts_with('/')) {
    table.fail(key, std::string(key) + " is \"" + path + "\"; write an absolute path");
  }
}

void checkNotZero(TableReader& table, std::string_view key, std::uint32_t count) {
  if (count == 0)
    table.fail(key, std::string(key) + " is 0: nobody could connect; write 1 or more");
}

// What a node hands to a job goes as lines, into a process that may run before the job's program.
void checkVariable(TableReader& table, const std::string& name, const std::string& value) {
  auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  bool named = !name.empty() && std::ranges::all_of(name, fits) && (name[0] < '0' || name[0] > '9');
  if (!named) {
    table.fail("environment", "\"" + name + "\" cannot name a variable; use A-Z a-z 0-9 _");
  } else if (name.starts_with("LD_") || name.starts_with("TIMESLICE_")) {
    table.fail("environment", name + " is set by the Slurm plugin itself; remove it");
  } else if (value.find('\n') != std::string::npos) {
    table.fail("environment", "the value of " + name + " has more than one line; write it as one");
  }
}

void readGroup(TableReader& table, GroupSection& group) {
  table.choice("policy", group.policy, {"fifo", "priority"});
  table.duration("ageing", group.ageing, 1ms, kDay);
  table.duration("hold_limit", group.holdLimit, kNever, kDay);
  table.duration("gang_wait", group.gangWait, 1ms, kDay);
  table.duration("broken_grace", group.brokenGrace, 0ms, kDay);
  table.duration("quiesce_deadline", group.quiesceDeadline, 1ms, kDay);
  table.users("users", group.users);
  table.textMap("environment", group.environment);
  for (const auto& [name, value] : group.environment) checkVariable(table, name, value);
  table.finish();
}

// A section says what differs from [defaults].
void readGroups(TableReader& top, ErrorList& errors, MasterConfig& config) {
  if (const toml::table* defaults = top.table("defaults")) {
    TableReader table(errors, *defaults, "[defaults]");
    readGroup(table, config.defaults);
  }
  const toml::table* groups = top.table("group");
  if (groups == nullptr) return;
  for (const auto& [key, node] : *groups) {
    std::string name(key.str());
    if (!isName(name)) {
      errors.add(key.source(),
                 "\"" + name + "\" cannot name a group; use 1 to 63 of A-Z a-z 0-9 . _ -");
      continue;
    }
    if (!node.is_table()) {
      errors.add(key.source(), "unknown key \"" + name +
                                   "\" in [group]; groups are written [group." + name +
                                   "] with their keys below");
      continue;
    }
    TableReader table(errors, *node.as_table(), "[group." + name + "]");
    GroupSection section = config.defaults;
    readGroup(table, section);
    config.groups[name] = std::move(section);
  }
}

// Without authentication anybody who reaches the port is anybody.
void checkAuthNone(TableReader& table, const MasterConfig& config) {
  if (config.auth != "none" || config.authNoneAnywhere) return;
  for (const std::string& address : config.listen) {
    HostPort parsed;
    std::string ignored;  // reported with the address itself
    if (!parseHostPort(address, parsed, ignored) || isLoopbackHost(parsed.host)) continue;
    table.fail("auth",
               "auth is \"none\" while listen has \"" + address +
                   "\"; use auth = \"munge\", listen on a loopback address, or accept the risk "
                   "with auth_none_anywhere = true");
  }
}

void checkLimits(TableReader& table, const MasterConfig& config) {
  if (config.suspectAfter <= config.heartbeat) {
    table.fail(table.has("suspect_after") ? "suspect_after" : "heartbeat",
               "suspect_after is not longer than heartbeat; make it at least three times as long");
  }
  if (config.deadAfter != kNever && config.deadAfter <= config.suspectAfter) {
    table.fail("dead_after",
               "dead_after is not longer than suspect_after; make it longer, or \"0 s\" for never");
  }
}

void readMaster(TableReader& table, ErrorList& errors, MasterConfig& config) {
  table.texts("listen", config.listen);
  for (const std::string& address : config.listen) checkAddress(table, "listen", address, false);
  if (config.listen.empty()) {
    table.fail("listen", "listen is empty; write at least one address, like [\"127.0.0.1:6830\"]");
  }
  table.text("socket", config.socket);
  checkPath(table, "socket", config.socket, true);
  table.text("http", config.http);
  checkAddress(table, "http", config.http, true);
  table.text("database", config.database);
  checkPath(table, "database", config.database, false);
  table.choice("auth", config.auth, {"munge", "none"});
  table.flag("auth_none_anywhere", config.authNoneAnywhere);
  checkAuthNone(table, config);
  table.choice("log_level", config.logLevel, {"error", "warning", "info", "debug"});
  table.users("operators", config.operators);
  table.count("sessions_per_user", config.sessionsPerUser, 1'000'000);
  checkNotZero(table, "sessions_per_user", config.sessionsPerUser);
  table.flag("any_group", config.anyGroup);
  table.duration("heartbeat", config.heartbeat, 1ms, kDay);
  table.duration("suspect_after", config.suspectAfter, 1ms, kDay);
  table.duration("dead_after", config.deadAfter, kNever, 30 * kDay);
  checkLimits(table, config);
  table.duration("recovery_grace", config.recoveryGrace, 0ms, kDay);
  table.flag("slurm", config.slurm);
  table.text("slurm_conf", config.slurmConf);
  checkPath(table, "slurm_conf", config.slurmConf, true);
  table.duration("slurm_period", config.slurmPeriod, 1ms, kDay);
  table.duration("slurm_grace", config.slurmGrace, 0ms, kDay);
  readGroups(table, errors, config);
  table.finish();
}

void readNode(TableReader& table, ErrorList&, NodeConfig& config) {
  table.text("name", config.name);
  if (!config.name.empty() && !isName(config.name)) {
    table.fail("name",
               "\"" + config.name + "\" cannot name a node; use 1 to 63 of A-Z a-z 0-9 . _ -");
  }
  table.text("master", config.master);
  checkAddress(table, "master", config.master, true);
  table.text("socket", config.socket);
  checkPath(table, "socket", config.socket, false);
  table.count("connections_per_user", config.connectionsPerUser, 1'000'000);
  checkNotZero(table, "connections_per_user", config.connectionsPerUser);
  table.duration("hello_deadline", config.helloDeadline, 1ms, kDay);
  table.text("state_dir", config.stateDir);
  checkPath(table, "state_dir", config.stateDir, false);
  table.text("http", config.http);
  checkAddress(table, "http", config.http, true);
  table.choice("auth", config.auth, {"munge", "none"});
  table.text("master_user", config.masterUser);
  table.choice("log_level", config.logLevel, {"error", "warning", "info", "debug"});
  table.choice("backend", config.backend, {"cuda", "none"});
  table.count("devices", config.devices, 1024);
  table.bytes("host_budget", config.hostBudget);
  table.duration("freed_deadline", config.freedDeadline, 1ms, kDay);
  table.duration("save_deadline", config.saveDeadline, 1ms, kDay);
  table.duration("restore_deadline", config.restoreDeadline, 1ms, kDay);
  table.duration("silent_limit", config.silentLimit, kNever, kDay);
  if (config.silentLimit != kNever) {
    table.fail("silent_limit",
               "silent_limit is not available in this release: no job is shown as SILENT; "
               "remove it, or write \"0 s\"");
  }
  table.flag("save_before_kill", config.saveBeforeKill);
  table.duration("order_delay", config.orderDelay, kNever, 60s);
  table.finish();
}

// False: an error was added.
bool readFile(const std::string& path, ErrorList& errors, std::string& text) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream all;
  if (file && all << file.rdbuf()) {
    text = all.str();
    return true;
  }
  // An empty file yields nothing to stream, which is no error.
  if (file.is_open() && errno == 0) return true;
  int error = errno;
  if (error == ENOENT) {
    errors.add(
        "does not exist; create it (an example comes with timeslice in conf/) or name another "
        "with --config");
  } else {
    errors.add("cannot be read: " + std::string(std::strerror(error)) +
               "; check its owner and mode, and those of its folders");
  }
  return false;
}

std::string adviceFor(std::string_view description) {
  if (description.find("redefine") != std::string_view::npos) {
    return "; a key or section stands once: remove one of the two";
  }
  return "; see https://toml.io for the syntax";
}

template <class Config>
Loaded<Config> load(const std::string& path, void (*read)(TableReader&, ErrorList&, Config&)) {
  Loaded<Config> loaded;
  ErrorList errors(path);
  std::string text;
  if (readFile(path, errors, text)) {
    try {
      toml::table top = toml::parse(text, path);
      TableReader table(errors, top, "");
      read(table, errors, loaded.value);
    } catch (const toml::parse_error& e) {
      errors.add(e.source(), std::string(e.description()) + adviceFor(e.description()));
    }
  }
  loaded.errors = errors.take();
  return loaded;
}

}  // namespace

Loaded<MasterConfig> loadMasterConfig(const std::string& path) {
  return load(path, readMaster);
}
Loaded<NodeConfig> loadNodeConfig(const std::string& path) {
  return load(path, readNode);
}

}  // namespace ts
