#include "node/watch.h"

namespace ts::node {
namespace {

bool isStill(const Identity& identity) {
  auto now = readProcess(identity.pid);
  return now && now->identity == identity;
}

}  // namespace

bool Watch::add(const Identity& identity) {
  if (watched_.contains(identity)) return true;
  auto pidfd = openPidfd(identity.pid);
  // Looked at after the pidfd was had: if it is still the same, the pidfd is its.
  if (!pidfd.ok() || !isStill(identity)) return false;
  One& one = watched_[identity];
  one.pidfd = kj::mv(pidfd.fd);
  one.event = std::make_unique<FdWatch>(port_, one.pidfd.get(), EV_READ,
                                        [this, identity] { fired(identity); });
  return true;
}

int Watch::pidfd(const Identity& identity) const {
  auto it = watched_.find(identity);
  return it == watched_.end() ? -1 : it->second.pidfd.get();
}

void Watch::fired(Identity identity) {
  auto gone = watched_.extract(identity);  // lives until we are through: we run inside its event
  ended_(identity);
}

}  // namespace ts::node
