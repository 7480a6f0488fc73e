// Whom a number addresses: a process that may be moved, one of its threads, or nobody.
#pragma once

#include <sys/types.h>

#include <string>

#include "backend/snapshot_backend.h"

namespace ts {

enum class ProcessKind {
  Leader,     // a living process
  Thread,     // the driver would take it for its whole process
  Gone,       // dead, a zombie, or never there
  Forbidden,  // 0, 1, negative, or this very process
};

struct ProcessLook {
  ProcessKind kind = ProcessKind::Gone;
  pid_t leader = 0;  // of a thread: its process
};

// Throws std::system_error when no descriptor is left to look with.
ProcessLook lookAt(pid_t pid);
// With a pidfd one system call, and none is needed to open.
ProcessLook lookAt(const Target& target);

// The outcome for everybody but a Leader.
BackendOutcome refuse(const ProcessLook& look, pid_t pid);

}  // namespace ts
