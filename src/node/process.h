// What /proc says about a process: who it is and where it comes from.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace ts::node {

// A process for as long as the machine runs: its number alone may be given to another.
struct Identity {
  pid_t pid = 0;
  std::uint64_t startTime = 0;  // in clock ticks since the boot
  auto operator<=>(const Identity&) const = default;
};

struct Process {
  Identity identity;
  pid_t parent = 0;
  pid_t session = 0;
  uid_t uid = 0;
  std::string cgroup;  // the deepest path that it is in, "/" when it is in none
};

// Nothing when there is no such process, it is a zombie, or the number is a thread's. Throws
// std::system_error when no descriptor is left to look with.
std::optional<Process> readProcess(pid_t pid);

// Of /proc/PID/cgroup, cgroups(7): each line is hierarchy:controllers:path. With version 1 a
// process is in many, and a scheduler or container engine names its own by more steps than the
// others have.
std::string deepestCgroup(std::istream& table);

// By a signal, as Slurm suspends a job, or by a debugger: it answers no driver.
bool isStopped(pid_t pid);

}  // namespace ts::node
