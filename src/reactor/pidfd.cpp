#include "reactor/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace ts {

Pidfd openPidfd(pid_t pid) {
  // By number: glibc has the name only since 2.36. The descriptor is close-on-exec by itself.
  long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) return {kj::AutoCloseFd(int(fd)), 0};
  int error = errno;
  // Young kernels say ENOENT for the id of a thread.
  return {kj::AutoCloseFd(), error == ENOENT ? EINVAL : error};
}

int signalPidfd(int pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 ? 0 : errno;
}

kj::Promise<void> whenExits(LibeventPort& port, int pidfd) {
  return port.whenReady(pidfd, EV_READ);
}

bool hasExited(int pidfd) {
  pollfd state{pidfd, POLLIN, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace ts
