#include "cli/plugstack.h"

#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "cli/slurm_partition.h"

namespace ts::cli {
namespace {

constexpr const char* kPlugin = "spank_timeslice.so";
constexpr int kDeepest = 8;
constexpr SlurmVersion kSendsIncludes{23, 11};

// "optional /usr/lib/slurm/spank_timeslice.so socket=..."
struct PluginLine {
  std::string file;  // where it stands
  std::string how;
  std::string plugin;
};

std::vector<std::string> filesOf(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return files;
}

// An include without a path is one beside the file.
std::string beside(const std::string& file, const std::string& name) {
  return name.starts_with('/') ? name : file.substr(0, file.rfind('/') + 1) + name;
}

std::optional<PluginLine> findPlugin(const std::string& file, int depth = 0) {
  std::ifstream in(file);
  for (std::string line; depth < kDeepest && std::getline(in, line);) {
    PluginLine found{.file = file};
    std::istringstream words(line.substr(0, line.find('#')));
    if (!(words >> found.how >> found.plugin)) continue;
    if (found.how == "include") {
      for (const std::string& each : filesOf(beside(file, found.plugin))) {
        if (auto inside = findPlugin(each, depth + 1)) return inside;
      }
    } else if (found.plugin.ends_with(kPlugin)) {
      return found;
    }
  }
  return std::nullopt;
}

bool isThere(const std::string& plugin, const std::string& folders) {
  if (plugin.starts_with('/')) return ::access(plugin.c_str(), R_OK) == 0;
  std::istringstream each(folders);
  for (std::string folder; std::getline(each, folder, ':');) {
    if (::access((folder + "/" + plugin).c_str(), R_OK) == 0) return true;
  }
  return false;
}

bool isConfigless(const SlurmRecord& config) {
  return valueOf(config, "SlurmctldParameters").find("enable_configless") != std::string::npos;
}

Finding noPlugstack(const std::string& file, bool configless) {
  std::string what = file + ": " + std::strerror(errno);
  if (configless) {
    return {Verdict::Warn, what + ": this machine has none of its own",
            "ask on the machine of slurmctld, which sends its own to the others"};
  }
  return {Verdict::Warn, what + ": this machine loads no plugin",
          "ask where jobs are submitted and run; name timeslice.conf in plugstack.conf"};
}

}  // namespace

Finding examinePlugstack(const SlurmRecord& config, const std::string& sent) {
  std::string file = valueOf(config, "PlugStackConfig");
  const bool configless = isConfigless(config);
  if (::access(file.c_str(), R_OK) != 0) {
    Finding none = noPlugstack(file, configless);
    file = sent + "/plugstack.conf";
    if (!configless || ::access(file.c_str(), R_OK) != 0) return none;
  }
  auto line = findPlugin(file);
  if (!line) {
    return {Verdict::Fail,
            file + " names no " + kPlugin + ": sbatch --timeslice-group is not known here",
            "include /usr/share/timeslice/slurm/timeslice.conf, on all machines of the cluster"};
  }
  if (!isThere(line->plugin, valueOf(config, "PluginDir"))) {
    return {Verdict::Fail, line->file + " names " + line->plugin + ", which is not there",
            "install the package timeslice-slurm for this version of Slurm"};
  }
  if (line->how != "optional") {
    return {Verdict::Fail,
            line->file + " says " + line->how + " " + line->plugin +
                ": should it fail to load, no job starts and nodes are drained",
            "write optional: a job that asked for time slicing fails all the same"};
  }
  if (configless && line->file != file && versionOf({config, {}, {}}) < kSendsIncludes) {
    return {Verdict::Fail,
            file + " includes " + line->file + ", which Slurm before 23.11 sends to no node",
            "write its line into " + file};
  }
  return {Verdict::Ok, line->plugin + " is loaded: " + line->file, ""};
}

}  // namespace ts::cli
