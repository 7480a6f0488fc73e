// To which job a process belongs that uses a device but never joined. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "node/process.h"
#include "wire/translate.h"

namespace ts::node {

// A process from which a job's other processes come.
struct Root {
  JobName job;
  Process process;
};
using FindProcess = std::function<std::optional<Process>(pid_t)>;

// The job, and what says so: "joined" (it is a root itself), "child", "session" or "cgroup".
struct Kinship {
  JobName job;
  std::string_view because;
};

// The nearest ancestor that is a root decides. Whoever lost its parents belongs to the one job
// whose roots share its session, or else its cgroup, under the same uid; if several do, to none:
// rather a stranger than the wrong job. Whose parents live is nobody's for sharing a terminal.
std::optional<Kinship> jobOf(const Process& process, const std::vector<Root>& roots,
                             const FindProcess& find);

}  // namespace ts::node
