// Who a process is: a pid and the time it started, so that a number used again is another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace simgpu {

// Nothing when there is no such process or only its zombie is left.
std::optional<std::uint64_t> startTimeOf(pid_t pid);

// The process that a thread belongs to; nothing when there is no such thread.
std::optional<pid_t> processOfThread(pid_t tid);

// Microseconds since boot would do; nanoseconds are what clock_gettime gives.
std::uint64_t nowNs();
void sleepUntilNs(std::uint64_t deadline);
void sleepNs(std::uint64_t duration);

}  // namespace simgpu
