#include "simgpu/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "simgpu/setting_key.h"
#include "simgpu/units.h"

namespace simgpu {
namespace {

bool sameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool isKeyLine(const std::string& line, const std::string& key) {
  std::size_t equals = line.find('=');
  return equals != std::string::npos && trimmed(line.substr(0, equals)) == key;
}

struct KeyLine {
  int number = 0;
  std::string key = {};
  int pid = 0;  // 0: of all processes
  std::string value = {};

  std::optional<std::string> read(const std::string& content) {
    std::size_t equals = content.find('=');
    if (equals == std::string::npos) return "'" + content + "' is not `key = value`";
    key = trimmed(content.substr(0, equals));
    value = trimmed(content.substr(equals + 1));
    std::size_t at = key.rfind('@');
    if (at == std::string::npos) return std::nullopt;
    auto [end, error] = std::from_chars(key.data() + at + 1, key.data() + key.size(), pid);
    if (error != std::errc{} || end != key.data() + key.size() || pid <= 0)
      return "'" + key + "' does not end in the pid of a process";
    key.resize(at);
    return std::nullopt;
  }
};

std::optional<std::string> setOfProcesses(Settings& settings, const std::vector<KeyLine>& lines) {
  std::map<int, Settings> each;
  for (const KeyLine& line : lines) {
    auto [it, isNew] = each.try_emplace(line.pid, settings);
    if (auto error = setOne(it->second, line.key, line.value))
      return "line " + std::to_string(line.number) + ": " + *error;
  }
  for (auto& [pid, own] : each)
    settings.ofProcess[pid] = std::make_shared<const Settings>(std::move(own));
  return std::nullopt;
}

}  // namespace

std::variant<Settings, std::string> parseSettings(std::string_view text) {
  Settings settings;
  std::vector<KeyLine> ofProcesses;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::string content = trimmed(line.substr(0, line.find('#')));
    if (content.empty()) continue;
    KeyLine parsed{.number = number};
    auto error = parsed.read(content);
    if (!error && parsed.pid == 0) error = setOne(settings, parsed.key, parsed.value);
    if (error) return "line " + std::to_string(number) + ": " + *error;
    if (parsed.pid != 0) ofProcesses.push_back(parsed);
  }
  auto error = setOfProcesses(settings, ofProcesses);
  if (error) return *error;
  return settings;
}

std::string fileText(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::shared_ptr<const Settings> ControlFile::read(int pid) {
  std::lock_guard lock(mutex_);
  if (changed()) load();
  auto own = settings_->ofProcess.find(pid);
  return own == settings_->ofProcess.end() ? settings_ : own->second;
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
