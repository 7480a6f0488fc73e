// What operators have ordered until further notice: pauses and drains. Kept on disk, because a
// master that restarts must not let go what a person holds.
#pragma once

#include <kj/async.h>

#include <set>
#include <string>

#include "master/shell.h"
#include "reactor/workers.h"
#include "store/store.h"

namespace ts {

class Standing {
public:
  Standing(Shell& shell, Store& store, Workers& workers);

  // Says what is kept, and orders it anew of a master that has forgotten everything.
  void apply();

  // In force when it returns, on disk when the promise is resolved.
  kj::Promise<void> pause(const std::string& group, bool on);
  kj::Promise<void> drain(NodeRecord& node, bool on);

  bool isPaused(const std::string& group) const { return paused_.count(group) != 0; }

private:
  kj::Promise<void> keep(StandingOrder order, bool on);
  void pauseNow(const std::string& group, bool on);
  void drainNow(NodeRecord& node, bool on);

  Shell& shell_;
  Store& store_;
  Workers& workers_;
  std::set<std::string> paused_, drained_;
  kj::ForkedPromise<void> written_;  // what was put in before: it stays in order
};

}  // namespace ts
