#include "cli/mask.h"

#include <cctype>
#include <regex>

#include "cli/words.h"

namespace ts::cli {
namespace {

bool inName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

// A short name is also a word of a sentence: it counts only where a name must stand.
bool standsForItself(const std::string& text, std::size_t at, std::size_t size) {
  bool marked = at > 0 && (text[at - 1] == '=' || text[at - 1] == '/' || text[at - 1] == '"');
  return marked || size > 3;
}

void line(std::string& out, const std::string& key, const std::string& value) {
  out += key + " = " + value + "\n";
}

std::string time(microseconds t) {
  return showDuration(std::uint64_t(t.count()));
}

void section(std::string& out, const std::string& name, const GroupSection& s) {
  out += "[" + name + "]\n";
  line(out, "policy", s.policy);
  line(out, "ageing", time(s.ageing));
  line(out, "hold_limit", time(s.holdLimit));
  line(out, "gang_wait", time(s.gangWait));
  line(out, "broken_grace", time(s.brokenGrace));
  line(out, "quiesce_deadline", time(s.quiesceDeadline));
  line(out, "users", counted(s.users.size(), "user") + ", masked");
  line(out, "environment", counted(s.environment.size(), "value") + ", masked");
}

}  // namespace

void Mask::job(const std::string& name) {
  if (!name.empty()) names_.try_emplace(name, "job-" + std::to_string(names_.size() + 1));
}

void Mask::learnEvents(const std::string& line) {
  static const std::regex named("\\b(?:job|holder)=\"?(?:[^ \"/]*/)?([^ \"]+)");
  for (std::sregex_iterator it(line.begin(), line.end(), named), end; it != end; ++it) {
    job((*it)[1]);
  }
}

std::string Mask::apply(const std::string& text) const {
  static const std::regex whose("\\b(uid|user|phase|label)=(\"[^\"]*\"|\\S+)");
  const std::string all = std::regex_replace(text, whose, "$1=masked");
  std::string out;
  for (std::size_t at = 0, end = 0; at < all.size(); at = end) {
    while (end < all.size() && inName(all[end])) ++end;
    std::string word = all.substr(at, end - at);
    while (word.ends_with('.')) word.pop_back();  // the end of a sentence
    auto known = names_.find(word);
    bool isName = known != names_.end() && standsForItself(all, at, word.size());
    out += isName ? known->second + all.substr(at + word.size(), end - at - word.size())
                  : all.substr(at, end - at);
    if (end < all.size()) out += all[end++];
  }
  return out;
}

std::string maskedConfig(const MasterConfig& c) {
  std::string out;
  line(out, "listen", joined(c.listen));
  line(out, "socket", c.socket);
  line(out, "http", c.http);
  line(out, "database", c.database);
  line(out, "auth", c.auth);
  line(out, "auth_none_anywhere", c.authNoneAnywhere ? "true" : "false");
  line(out, "log_level", c.logLevel);
  line(out, "operators", counted(c.operators.size(), "user") + ", masked");
  line(out, "sessions_per_user", std::to_string(c.sessionsPerUser));
  line(out, "any_group", c.anyGroup ? "true" : "false");
  line(out, "heartbeat", time(c.heartbeat));
  line(out, "suspect_after", time(c.suspectAfter));
  line(out, "dead_after", time(c.deadAfter));
  line(out, "recovery_grace", time(c.recoveryGrace));
  line(out, "slurm", c.slurm ? "true" : "false");
  line(out, "slurm_conf", c.slurmConf);
  line(out, "slurm_period", time(c.slurmPeriod));
  line(out, "slurm_grace", time(c.slurmGrace));
  section(out, "defaults", c.defaults);
  for (const auto& [name, group] : c.groups) section(out, "group." + name, group);
  return out;
}

std::string maskedConfig(const NodeConfig& c) {
  std::string out;
  line(out, "name", c.name);
  line(out, "master", c.master);
  line(out, "socket", c.socket);
  line(out, "connections_per_user", std::to_string(c.connectionsPerUser));
  line(out, "hello_deadline", time(c.helloDeadline));
  line(out, "state_dir", c.stateDir);
  line(out, "http", c.http);
  line(out, "auth", c.auth);
  line(out, "master_user", "masked");
  line(out, "log_level", c.logLevel);
  line(out, "backend", c.backend);
  line(out, "devices", std::to_string(c.devices));
  line(out, "save_before_kill", c.saveBeforeKill ? "true" : "false");
  line(out, "host_budget", showBytes(c.hostBudget));
  line(out, "freed_deadline", time(c.freedDeadline));
  line(out, "save_deadline", time(c.saveDeadline));
  line(out, "restore_deadline", time(c.restoreDeadline));
  line(out, "silent_limit", time(c.silentLimit));
  line(out, "order_delay", time(c.orderDelay));
  return out;
}

}  // namespace ts::cli
