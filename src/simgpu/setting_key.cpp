#include "simgpu/setting_key.h"

#include <cstdlib>
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

// "1 2 3; 7 8": two sets.
bool parsePeers(Settings& s, const std::string& text) {
  std::istringstream sets(text);
  for (std::string one; std::getline(sets, one, ';');) {
    std::istringstream words(one);
    std::set<int> peers;
    for (int pid; words >> pid;) peers.insert(pid);
    if (!words.eof()) return false;
    s.peers.push_back(std::move(peers));
  }
  return true;
}

bool parseState(Settings& s, const std::string& text) {
  s.driverState = text.empty() ? -1 : text[0] - '0';
  return text.size() == 1 && *s.driverState >= 0 && *s.driverState <= 9;
}

bool parseListed(Settings& s, const std::string& text) {
  s.listed = text;
  return text == "no" || text == "N/A" || parseBytes(text).has_value();
}

Setter limit(std::optional<std::uint64_t> Settings::*field) {
  return [=](Settings& s, const std::string& text) {
    s.*field = parseBytes(text);
    return (s.*field).has_value();
  };
}

Setter feature(Feature Settings::*field) {
  return [=](Settings& s, const std::string& text) {
    if (text != "off" && text != "on" && text != "unsupported") return false;
    s.*field = text == "off" ? Feature::Off : text == "on" ? Feature::On : Feature::Unsupported;
    return true;
  };
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
      {"no_context", flag(&Settings::noContext)},
      {"strands", flag(&Settings::strands)},
      {"mig", flag(&Settings::mig)},
      {"unsafe_teardown", flag(&Settings::unsafeTeardown)},
      {"release_delay", with(parseDuration, &Settings::releaseDelayNs)},
      {"cuda_version", parseVersion},
      {"peers", parsePeers},
      {"state", parseState},
      {"listed", parseListed},
      {"ipc", feature(&Settings::ipc)},
      {"uvm", feature(&Settings::uvm)},
      {"nvls", feature(&Settings::nvls)},
      {"mps", feature(&Settings::mps)},
      {"host_memory", limit(&Settings::hostMemory)},
      {"locked_memory", limit(&Settings::lockedMemory)},
      {"store", limit(&Settings::store)},
      {"mappings", limit(&Settings::mappings)},
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

bool parseCrash(const std::string& text, Crash& crash) {
  crash = text == "after" ? Crash::After : text == "before" ? Crash::Before : Crash::Never;
  return crash != Crash::Never;
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
  if (kind == "crash") return parseCrash(text, s.crash[call]);
  return kind == "fail" && parseFail(text, s.fail[call]);
}

std::string knownKeys() {
  std::string all;
  for (const auto& [key, setter] : setters()) all += key + ", ";
  return all + "delay.CALL, hang.CALL, fail.CALL, crash.CALL (each may end in @PID)";
}

}  // namespace

std::optional<std::string> setOne(Settings& s, const std::string& key, const std::string& value) {
  auto it = setters().find(key);
  bool knob = key.find('.') != std::string::npos;
  if (it == setters().end() && !knob) return "unknown key '" + key + "'; known: " + knownKeys();
  bool good = knob ? setKnob(s, key, value) : it->second(s, value);
  if (good) return std::nullopt;
  return "key '" + key + "' does not take '" + value +
         "'; sizes are like 1 GiB, rates 4 GB/s, durations 5 ms, flags yes or no, "
         "trace off, checkpoint or all, failures 2, 2 on 3 or 2 after, crashes before or after, "
         "features off, on or unsupported, state 0 to 9, listed no, N/A or a size, peers are pids, "
         "sets of them parted by ;";
}

}  // namespace simgpu
