// Which Slurm job a process belongs to, as its cgroup or the slurmstepd that it comes from says.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "node/process.h"

namespace ts::node {

// "/slurm/uid_1000/job_17/step_0", and "/system.slice/slurmstepd.scope/job_17/step_0". Pure.
std::optional<std::uint32_t> slurmJobIn(std::string_view cgroup);
// How slurmstepd shows itself: "slurmstepd: [17.0]", "slurmstepd: [17.batch]". Pure.
std::optional<std::uint32_t> slurmJobInTitle(std::string_view title);

// Fit to name it, not to trust it. Not by its environment, which only its user may read.
std::optional<std::uint32_t> slurmJobOf(const Process& process);

}  // namespace ts::node
