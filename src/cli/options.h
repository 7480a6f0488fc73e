// The command line of tsctl.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ts::cli {

struct Options {
  std::string command;  // "status", "run", ...

  // Everywhere.
  bool json = false;
  std::string master;      // "": not said
  std::string auth;        // "": not said
  std::string nodeSocket;  // "": not said
  std::string nodeConfig = "/etc/timeslice/node.toml";
  std::chrono::microseconds timeout = std::chrono::seconds(5);

  // What a command is about.
  std::string group;
  std::string job;
  std::string node;
  std::uint32_t slurmJob = 0;
  std::string shell;                                        // completion
  std::string output;                                       // report; "": a name with the time
  std::string masterConfig = "/etc/timeslice/master.toml";  // report
  bool slurm = false;                                       // doctor
  std::string partition;  // doctor --slurm; "": each in which jobs share nodes
  bool kill = false;
  bool follow = false;
  std::uint64_t sinceUs = 0;  // events
  std::vector<pid_t> pids;

  // run, slice.
  std::string devices;
  std::string backend;
  std::string phase;
  std::uint32_t gang = 0;
  std::int32_t priority = 0;
  std::optional<std::chrono::microseconds> deadline;
  std::vector<std::string> program;
};

// Either options, or an end with a text: help, version (0) or a mistake (2).
struct Parsed {
  Options options;
  std::optional<int> exit;
  std::string text;
};
Parsed parseOptions(const std::vector<std::string>& arguments);

// One command as completions need it.
struct CommandInfo {
  std::string name;
  std::string summary;
  std::vector<std::string> options;  // "--json"
  std::vector<std::string> valued;   // of these, those that take a value
};
std::vector<CommandInfo> commands();

}  // namespace ts::cli
