#include "node/held_process.h"

#include <kj/debug.h>

#include <cerrno>

#include "reactor/pidfd.h"

namespace ts::node {

bool HeldProcess::isStill() const {
  return !hasExited(pidfd_->get());
}

std::optional<HeldProcess> hold(const Identity& identity) {
  auto pidfd = openPidfd(identity.pid);
  if (!pidfd.ok()) {
    if (pidfd.error == ESRCH || pidfd.error == EINVAL) return {};
    KJ_FAIL_SYSCALL("pidfd_open", pidfd.error, identity.pid);
  }
  // Looked at after the pidfd was had: if it is still the same, the pidfd is its.
  auto now = readProcess(identity.pid);
  if (!now || now->identity != identity) return {};
  return HeldProcess(identity, kj::mv(pidfd.fd));
}

}  // namespace ts::node
