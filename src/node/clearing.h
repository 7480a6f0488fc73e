// A member that has ended is cleared when its devices were measured to be free of it, however long
// that takes.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>

#include "log/log.h"
#include "node/mover.h"

namespace ts::node {

class Clearing {
public:
  struct Parts {
    Registry& registry;
    Mover& mover;
    kj::Timer& timer;
    Log& log;
    std::function<void(MemberId)> cleared;
    kj::Duration freedDeadline;  // then a person is told, again and again
  };
  explicit Clearing(Parts parts) : parts_(std::move(parts)) {}
  KJ_DISALLOW_COPY(Clearing);

  // Whoever stores the promise owns the waiting.
  kj::Promise<void> clear(MemberId member);

private:
  struct Dead;  // one that is waited for
  kj::Promise<void> waitLonger(kj::Own<Dead> dead, kj::Duration pause);
  void complain(Dead& dead, const std::optional<DeviceBytes>& left);

  Parts parts_;
};

}  // namespace ts::node
