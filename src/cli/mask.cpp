#include "cli/mask.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "cli/words.h"

namespace ts::cli {
namespace {

bool inName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

// A short name is also a word of a sentence: it counts only where a name must stand.
bool standsForItself(const std::string& text, std::size_t at, std::size_t size) {
  bool begins = at == 0 || !inName(text[at - 1]);
  std::size_t end = at + size;
  bool ends = end == text.size() || !inName(text[end]) || text[end] == '.';
  bool marked = at > 0 && (text[at - 1] == '=' || text[at - 1] == '/' || text[at - 1] == '"');
  return begins && ends && (marked || size > 3);
}

std::string replaced(const std::string& text, const std::string& name, const std::string& by) {
  std::string out;
  std::size_t from = 0;
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    if (at < from || !standsForItself(text, at, name.size())) continue;
    out += text.substr(from, at - from) + by;
    from = at + name.size();
  }
  return out + text.substr(from);
}

void line(std::string& out, const std::string& key, const std::string& value) {
  out += key + " = " + value + "\n";
}

void section(std::string& out, const std::string& name, const GroupSection& s) {
  auto time = [](microseconds t) { return showDuration(std::uint64_t(t.count())); };
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

std::string time(microseconds t) {
  return showDuration(std::uint64_t(t.count()));
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
  std::string out = std::regex_replace(text, whose, "$1=masked");
  std::vector<std::pair<std::string, std::string>> all(names_.begin(), names_.end());
  // The longest first: one name may be the beginning of another.
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [name, by] : all) out = replaced(out, name, by);
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
