#include "node/watch.h"

namespace ts::node {

bool Watch::add(const Identity& identity) {
  if (watched_.contains(identity)) return true;
  auto process = hold(identity);
  if (!process) return false;
  auto event = std::make_unique<FdWatch>(port_, process->pidfd(), EV_READ,
                                         [this, identity] { fired(identity); });
  watched_.emplace(identity, One{std::move(*process), std::move(event)});
  return true;
}

std::optional<HeldProcess> Watch::held(const Identity& identity) const {
  auto it = watched_.find(identity);
  return it == watched_.end() ? std::nullopt : std::optional(it->second.process);
}

void Watch::fired(Identity identity) {
  auto gone = watched_.extract(identity);  // lives until we are through: we run inside its event
  ended_(identity);
}

}  // namespace ts::node
