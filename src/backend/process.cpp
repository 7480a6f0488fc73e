#include "backend/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace ts {

namespace {

pid_t leaderOf(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("Tgid:\t")) return static_cast<pid_t>(std::stol(line.substr(6)));
  return 0;
}

// A zombie, too: the driver has nobody to talk to.
bool hasEnded(int pidfd) {
  pollfd end{pidfd, POLLIN, 0};
  return ::poll(&end, 1, 0) > 0;
}

}  // namespace

// A pidfd tells all of it in three short calls; /proc/PID/status costs ten times that.
ProcessLook lookAt(pid_t pid) {
  if (pid <= 1 || pid == ::getpid()) return {.kind = ProcessKind::Forbidden};
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0 && errno == ESRCH) return {.kind = ProcessKind::Gone};
  if (fd < 0 && (errno == EMFILE || errno == ENFILE))
    throw std::system_error(errno, std::generic_category(), "pidfd_open of " + std::to_string(pid));
  if (fd < 0) {  // a thread (EINVAL; ENOENT since Linux 6.9)
    const pid_t leader = leaderOf(pid);
    if (leader == 0) return {.kind = ProcessKind::Gone};
    return {.kind = leader == pid ? ProcessKind::Leader : ProcessKind::Thread, .leader = leader};
  }
  const bool gone = hasEnded(fd);
  ::close(fd);
  if (gone) return {.kind = ProcessKind::Gone};
  return {.kind = ProcessKind::Leader, .leader = pid};
}

ProcessLook lookAt(const Target& target) {
  if (target.pidfd < 0) return lookAt(target.pid);
  if (hasEnded(target.pidfd)) return {.kind = ProcessKind::Gone};
  return {.kind = ProcessKind::Leader, .leader = target.pid};
}

BackendOutcome refuse(const ProcessLook& look, pid_t pid) {
  using enum BackendOutcome::Code;
  std::string number = std::to_string(pid);
  switch (look.kind) {
    case ProcessKind::Thread:
      return {.code = NotAProcess,
              .detail = number + " is a thread of process " + std::to_string(look.leader) +
                        "; name the process"};
    case ProcessKind::Forbidden:
      return {
          .code = NotAProcess,
          .detail = number + " is no process that can be moved; name the pid of a CUDA process"};
    case ProcessKind::Gone:
    case ProcessKind::Leader:
      break;
  }
  return {
      .code = TargetGone, .detail = "process " + number + " has ended", .after = TargetState::Gone};
}

}  // namespace ts
