// How much host memory may still be taken: by the machine, and by each cgroup above a process.
#pragma once

#include <string>
#include <vector>

#include "node/room.h"

namespace ts::node {

// Blocking reads of /proc and /sys/fs/cgroup. `root`: where those lie, for tests.
std::uint64_t memAvailable(const std::string& root = "");
// Every ancestor with a limit, for version 1 and 2 of cgroups. File cache that can be dropped
// counts as room; tmpfs does not.
std::vector<HostLimit> cgroupLimits(pid_t pid, const JobName& job, const std::string& root = "");

}  // namespace ts::node
