// TOML to plain structs: MasterConfig and NodeConfig. Every error says file:line:column.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ts {

using std::chrono::microseconds;

struct ConfigError {
  std::string text;  // "file:line:column: what; what to do", may be several lines
};

// A value or what is wrong with the file.
template <class T>
struct Loaded {
  T value{};
  std::vector<ConfigError> errors;
  bool ok() const { return errors.empty(); }
};

struct GroupSection {
  std::string policy = "fifo";  // fifo | priority
  microseconds ageing = std::chrono::seconds(60);
  microseconds holdLimit{0};
  microseconds gangWait = std::chrono::seconds(60);
  microseconds brokenGrace = std::chrono::seconds(30);
  microseconds quiesceDeadline = std::chrono::seconds(30);
  std::vector<uid_t> users;                        // that may use it; empty: everybody
  std::map<std::string, std::string> environment;  // set in the job by the Slurm plugin
};

// /etc/timeslice/master.toml
struct MasterConfig {
  std::vector<std::string> listen = {"127.0.0.1:6830"};  // RPC; "HOST:PORT"; port 0: any free one
  std::string socket = "/run/timeslice-master/master.sock";  // operators on this machine; "": none
  std::string http = "127.0.0.1:6831";                       // metrics and dashboard; "": none
  std::string database = "/var/lib/timeslice/master.db";
  std::string auth = "munge";     // munge | none
  bool authNoneAnywhere = false;  // allow "none" beyond loopback
  std::string logLevel = "info";
  std::vector<uid_t> operators;         // besides root
  std::uint32_t sessionsPerUser = 256;  // of tsctl and its kind at once
  bool anyGroup = true;                 // a group that is not configured exists on demand
  microseconds heartbeat = std::chrono::seconds(2);
  microseconds suspectAfter = std::chrono::seconds(10);
  microseconds deadAfter{0};  // 0: only by verdict
  microseconds recoveryGrace = std::chrono::seconds(10);
  bool slurm = false;     // ask Slurm's commands about jobs and nodes
  std::string slurmConf;  // the slurm.conf they are told; "": they know where it is
  microseconds slurmPeriod = std::chrono::seconds(30);
  microseconds slurmGrace =
      std::chrono::seconds(60);                // from a job's epilog to the end of what is left
  std::map<std::string, GroupSection> groups;  // [group.NAME]
  GroupSection defaults;                       // [defaults]: for groups without a section
};

// /etc/timeslice/node.toml
struct NodeConfig {
  std::string name;                       // "": the host's name
  std::string master = "127.0.0.1:6830";  // "": alone, for tsctl snapshot and restore
  std::string socket = "/run/timeslice/node.sock";
  std::uint32_t connectionsPerUser = 1024;  // to the socket; and a quarter of all descriptors
  microseconds helloDeadline = std::chrono::seconds(10);  // for a connection to say who it is
  std::string stateDir = "/run/timeslice/state";          // tmpfs: intents and outcomes of orders
  std::string http = "";                                  // metrics; "": none
  std::string auth = "munge";
  std::string masterUser = "timeslice";  // whose MUNGE credential the master must have
  std::string logLevel = "info";
  std::string backend = "cuda";  // cuda | none: for jobs that do not say
  std::uint32_t devices = 0;     // backend none without NVML: how many to declare
  std::uint64_t hostBudget = 0;  // bytes for snapshots; 0: only MemAvailable and cgroups
  microseconds freedDeadline = std::chrono::seconds(30);  // for NVML to show memory as freed
  microseconds saveDeadline = std::chrono::seconds(120);  // then OVERDUE
  microseconds restoreDeadline = std::chrono::seconds(120);
  microseconds silentLimit{0};  // 0: never shown as SILENT
  bool saveBeforeKill = true;   // take a job's state off the device before it is killed
  microseconds orderDelay{0};   // bench only: added before each order is obeyed
};

Loaded<MasterConfig> loadMasterConfig(const std::string& path);
Loaded<NodeConfig> loadNodeConfig(const std::string& path);

// "30 s", "1500 ms", "2 h": a bare number is refused. "512 MiB", "16 GB".
bool parseDuration(const std::string& text, microseconds& out, std::string& why);
bool parseBytes(const std::string& text, std::uint64_t& out, std::string& why);

}  // namespace ts
