#include "node/process.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <vector>

namespace ts::node {
namespace {

// That no descriptor is left says nothing about the process.
std::ifstream opened(const std::string& path) {
  std::ifstream in(path);
  if (!in.is_open() && (errno == EMFILE || errno == ENFILE)) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return in;
}

std::string slurp(const std::string& path) {
  auto in = opened(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string inProc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// The fields after the command's name, which may itself have spaces and brackets. [0] is the state.
std::vector<std::string> statFields(pid_t pid) {
  auto text = slurp(inProc(pid, "stat"));
  auto bracket = text.rfind(')');
  if (bracket == std::string::npos) return {};
  std::istringstream in(text.substr(bracket + 1));
  return {std::istream_iterator<std::string>(in), {}};
}

template <class T>
T number(const std::string& text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Status {
  pid_t leader = 0;
  uid_t uid = 0;
};

Status readStatus(pid_t pid) {
  Status status;
  auto in = opened(inProc(pid, "status"));
  for (std::string word; in >> word;) {
    if (word == "Tgid:") in >> status.leader;
    if (word == "Uid:") {
      in >> status.uid;
      break;
    }
  }
  return status;
}

}  // namespace

std::string deepestCgroup(std::istream& table) {
  auto depth = [](const std::string& path) { return std::ranges::count(path, '/'); };
  std::string deepest = "/";
  for (std::string line; std::getline(table, line);) {
    auto path = line.substr(std::min(line.size(), line.find(':', line.find(':') + 1) + 1));
    if (path.size() > 1 && (deepest.size() == 1 || depth(path) > depth(deepest))) deepest = path;
  }
  return deepest;
}

std::optional<Process> readProcess(pid_t pid) {
  constexpr std::size_t kState = 0, kParent = 1, kSession = 3, kStartTime = 19;
  if (pid <= 0) return {};
  auto stat = statFields(pid);
  if (stat.size() <= kStartTime || stat[kState] == "Z" || stat[kState] == "X") return {};
  auto status = readStatus(pid);
  if (status.leader != pid) return {};
  auto cgroups = opened(inProc(pid, "cgroup"));
  return Process{.identity = {pid, number<std::uint64_t>(stat[kStartTime])},
                 .parent = number<pid_t>(stat[kParent]),
                 .session = number<pid_t>(stat[kSession]),
                 .uid = status.uid,
                 .cgroup = deepestCgroup(cgroups)};
}

bool isStopped(pid_t pid) {
  auto stat = statFields(pid);
  return !stat.empty() && (stat[0] == "T" || stat[0] == "t");
}

}  // namespace ts::node
