#include "backend/process.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace ts {

ProcessLook lookAt(pid_t pid) {
  if (pid <= 1 || pid == ::getpid()) return {.kind = ProcessKind::Forbidden};
  std::string path = "/proc/" + std::to_string(pid) + "/status";
  std::ifstream status(path);
  if (!status.is_open() && (errno == EMFILE || errno == ENFILE)) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  std::string line;
  char state = 'X';
  pid_t leader = 0;
  while (std::getline(status, line)) {
    if (line.starts_with("State:\t")) state = line.at(7);
    if (line.starts_with("Tgid:\t")) {
      leader = static_cast<pid_t>(std::stol(line.substr(6)));
      break;
    }
  }
  // A zombie has no device state any more, and the driver has nobody to talk to.
  if (leader == 0 || state == 'Z' || state == 'X') return {.kind = ProcessKind::Gone};
  if (leader != pid) return {.kind = ProcessKind::Thread, .leader = leader};
  return {.kind = ProcessKind::Leader, .leader = pid};
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
