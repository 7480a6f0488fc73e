#include "simgpu/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "simgpu/units.h"

namespace simgpu {
namespace {

using Setter = std::function<bool(Settings&, const std::string&)>;

bool parseBool(const std::string& text, bool& out) {
  if (text != "yes" && text != "no") return false;
  out = text == "yes";
  return true;
}

template <class T>
Setter with(std::optional<std::uint64_t> (*parse)(std::string_view), T Settings::*field) {
  return [=](Settings& s, const std::string& text) {
    auto value = parse(text);
    if (value) s.*field = *value;
    return value.has_value();
  };
}

Setter flag(bool Settings::*field) {
  return [=](Settings& s, const std::string& text) { return parseBool(text, s.*field); };
}

Setter words(std::string Settings::*field) {
  return [=](Settings& s, const std::string& text) {
    s.*field = text;
    return !text.empty();
  };
}

bool parseTrace(Settings& s, const std::string& text) {
  if (text == "off")
    s.trace = TraceLevel::Off;
  else if (text == "checkpoint")
    s.trace = TraceLevel::Checkpoint;
  else if (text == "all")
    s.trace = TraceLevel::All;
  else
    return false;
  return true;
}

bool parseVersion(Settings& s, const std::string& text) {
  char* end = nullptr;
  s.cudaVersion = static_cast<int>(std::strtol(text.c_str(), &end, 10));
  return *end == '\0' && s.cudaVersion >= 1000;
}

bool parsePeers(Settings& s, const std::string& text) {
  std::istringstream words(text);
  for (int pid; words >> pid;) s.peers.insert(pid);
  return words.eof();
}

const std::map<std::string, Setter, std::less<>>& setters() {
  static const auto& all = *new std::map<std::string, Setter, std::less<>>{
      {"bytes", with(parseBytes, &Settings::bytes)},
      {"context_bytes", with(parseBytes, &Settings::contextBytes)},
      {"d2h", with(parseRate, &Settings::d2hRate)},
      {"h2d", with(parseRate, &Settings::h2dRate)},
      {"lock", with(parseDuration, &Settings::lockNs)},
      {"save", with(parseDuration, &Settings::saveNs)},
      {"restore", with(parseDuration, &Settings::restoreNs)},
      {"unlock", with(parseDuration, &Settings::unlockNs)},
      {"name", words(&Settings::name)},
      {"uuid", words(&Settings::uuid)},
      {"driver", words(&Settings::driverVersion)},
      {"persistence_mode", flag(&Settings::persistenceMode)},
      {"sticky_restore_oom", flag(&Settings::stickyRestoreOom)},
      {"lock_times_out", flag(&Settings::lockTimesOut)},
      {"lock_crashes", flag(&Settings::lockCrashes)},
      {"mig", flag(&Settings::mig)},
      {"unsafe_teardown", flag(&Settings::unsafeTeardown)},
      {"release_delay", with(parseDuration, &Settings::releaseDelayNs)},
      {"cuda_version", parseVersion},
      {"peers", parsePeers},
      {"trace", parseTrace}};
  return all;
}

// "2", "2 after", "2 on 3", "2 after on 3".
bool parseFail(const std::string& text, FailKnob& knob) {
  std::istringstream words(text);
  if (!(words >> knob.code) || knob.code <= 0) return false;
  for (std::string word; words >> word;) {
    if (word == "after")
      knob.after = true;
    else if (word != "on" || !(words >> knob.onCall) || knob.onCall == 0)
      return false;
  }
  return true;
}

bool setKnob(Settings& s, const std::string& key, const std::string& text) {
  std::size_t dot = key.find('.');
  std::string kind = key.substr(0, dot);
  std::string call = key.substr(dot + 1);
  if (kind == "delay") {
    auto ns = parseDuration(text);
    if (ns) s.delayNs[call] = *ns;
    return ns.has_value();
  }
  if (kind == "hang") return parseBool(text, s.hang[call]);
  return kind == "fail" && parseFail(text, s.fail[call]);
}

std::string knownKeys() {
  std::string all;
  for (const auto& [key, setter] : setters()) all += key + ", ";
  return all + "delay.CALL, hang.CALL, fail.CALL (CALL may end in @PID)";
}

std::optional<std::string> setOne(Settings& s, const std::string& key, const std::string& value) {
  auto it = setters().find(key);
  bool knob = key.find('.') != std::string::npos;
  if (it == setters().end() && !knob) return "unknown key '" + key + "'; known: " + knownKeys();
  bool good = knob ? setKnob(s, key, value) : it->second(s, value);
  if (good) return std::nullopt;
  return "key '" + key + "' does not take '" + value +
         "'; sizes are like 1 GiB, rates 4 GB/s, durations 5 ms, flags yes or no, "
         "trace off, checkpoint or all, failures 2, 2 on 3 or 2 after, peers are pids";
}

bool sameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool isKeyLine(const std::string& line, const std::string& key) {
  std::size_t equals = line.find('=');
  return equals != std::string::npos && trimmed(line.substr(0, equals)) == key;
}

}  // namespace

std::variant<Settings, std::string> parseSettings(std::string_view text) {
  Settings settings;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::string content = trimmed(line.substr(0, line.find('#')));
    if (content.empty()) continue;
    std::size_t equals = content.find('=');
    if (equals == std::string::npos)
      return "line " + std::to_string(number) + ": '" + content + "' is not `key = value`";
    auto error =
        setOne(settings, trimmed(content.substr(0, equals)), trimmed(content.substr(equals + 1)));
    if (error) return "line " + std::to_string(number) + ": " + *error;
  }
  return settings;
}

std::string fileText(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::shared_ptr<const Settings> ControlFile::read() {
  std::lock_guard lock(mutex_);
  if (changed()) load();
  return settings_;
}

bool ControlFile::changed() {
  struct stat now = {};
  if (::stat(path_.c_str(), &now) != 0 || sameFile(now, seen_)) return false;
  seen_ = now;
  return true;
}

void ControlFile::load() {
  auto parsed = parseSettings(fileText(path_));
  if (auto* error = std::get_if<std::string>(&parsed)) {
    std::fprintf(stderr, "simgpu: %s: %s; the old settings stay\n", path_.c_str(), error->c_str());
    return;
  }
  settings_ = std::make_shared<Settings>(std::get<Settings>(std::move(parsed)));
}

std::optional<std::string> setKey(const std::string& path, const std::string& key,
                                  const std::string& value) {
  std::istringstream lines(fileText(path));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!isKeyLine(line, key)) text += line + "\n";
  if (!value.empty()) text += key + " = " + value + "\n";
  auto parsed = parseSettings(text);
  if (auto* error = std::get_if<std::string>(&parsed)) return path + ": " + *error;
  // Renamed into place, so that a reader sees the old file or the new one.
  std::string fresh = path + "." + std::to_string(::getpid());
  std::ofstream(fresh) << text;
  if (::rename(fresh.c_str(), path.c_str()) != 0) return "cannot replace " + path;
  return std::nullopt;
}

}  // namespace simgpu
