#include "node/host_memory.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace ts::node {
namespace {

// "max", a missing file and version 1's astronomical number are no limit.
std::optional<Bytes> readBytes(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  Bytes value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || word.empty() || value >= (Bytes(1) << 62)) return {};
  return value;
}

// Lines of "key value", perhaps with a unit behind.
Bytes readStat(const std::string& path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    Bytes value = 0;
    if (words >> word >> value && word == key) return value;
  }
  return 0;
}

struct Files {
  const char* limit;
  const char* usage;
  const char* cache;
};
constexpr Files kVersion2{"/memory.max", "/memory.current", "inactive_file"};
constexpr Files kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                          "total_inactive_file"};

void readAncestors(const std::string& mount, std::string path, const Files& files,
                   const JobName& job, std::vector<HostLimit>& out) {
  while (path.size() > 1) {
    auto folder = mount + path;
    if (auto limit = readBytes(folder + files.limit)) {
      auto usage = readBytes(folder + files.usage).value_or(0);
      auto cache = readStat(folder + "/memory.stat", files.cache);
      auto used = usage > cache ? usage - cache : 0;
      out.push_back({"cgroup " + path, *limit > used ? *limit - used : 0, {job}});
    }
    path.erase(path.rfind('/'));
  }
}

}  // namespace

std::uint64_t memAvailable(const std::string& root) {
  return readStat(root + "/proc/meminfo", "MemAvailable:") * 1024;
}

std::vector<HostLimit> cgroupLimits(pid_t pid, const JobName& job, const std::string& root) {
  std::vector<HostLimit> out;
  std::ifstream in(root + "/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string line; std::getline(in, line);) {
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto path = line.substr(second + 1);
    if (controllers == ",,") {
      readAncestors(root + "/sys/fs/cgroup", path, kVersion2, job, out);
    } else if (controllers.find(",memory,") != std::string::npos) {
      readAncestors(root + "/sys/fs/cgroup/memory", path, kVersion1, job, out);
    }
  }
  return out;
}

}  // namespace ts::node
