// A process that a worker may be told to move: its number, and the pidfd that says whose number it
// is.
#pragma once

#include <kj/io.h>

#include <memory>
#include <optional>

#include "backend/snapshot_backend.h"
#include "node/process.h"

namespace ts::node {

// Any thread may have a copy; the last one closes the pidfd. A pidfd does not keep the number from
// being given to another once the process has ended, so `isStill()` is asked right before each
// call.
class HeldProcess {
public:
  HeldProcess(const Identity& identity, kj::AutoCloseFd pidfd)
      : identity_(identity), pidfd_(std::make_shared<kj::AutoCloseFd>(kj::mv(pidfd))) {}

  const Identity& identity() const { return identity_; }
  int pidfd() const { return pidfd_->get(); }
  Target target() const { return {identity_.pid, pidfd()}; }
  bool isStill() const;

private:
  Identity identity_;
  std::shared_ptr<const kj::AutoCloseFd> pidfd_;
};

// Nothing: it has ended, or its number has been given to another. Throws when no descriptor is
// left: that says nothing about the process.
std::optional<HeldProcess> hold(const Identity& identity);

}  // namespace ts::node
