// Processes by pidfd: a number may be reused, a pidfd always means the same process.
#pragma once

#include <sys/types.h>

#include "reactor/libevent_port.h"

namespace ts {

struct Pidfd {
  kj::AutoCloseFd fd;
  int error = 0;  // 0, or errno: ESRCH no such process, EINVAL the id of a thread
  bool ok() const { return error == 0; }
};

Pidfd openPidfd(pid_t pid);
// 0 or errno. Reaches the process that was meant, or none.
int signalPidfd(int pidfd, int signal);
// Resolves when the process has ended (it may still be a zombie).
kj::Promise<void> whenExits(LibeventPort& port, int pidfd);
bool hasExited(int pidfd);

}  // namespace ts
