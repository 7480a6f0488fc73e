// One timer that rings at the earliest time that was asked for.
#pragma once

#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "core/ids.h"

namespace ts {

// The time of the core: that of the monotonic clock, and of KJ's timers.
Instant monotonicNow();

// The time of people: of the history and of nodes last seen.
std::uint64_t unixNowUs();

class Alarm {
public:
  Alarm(kj::Timer& timer, std::function<void()> ring);

  // No later than `at`. Asking for a later time than before costs nothing and changes nothing: the
  // ring comes early once, and whoever is rung looks at the clock.
  void noLaterThan(Instant at);

private:
  kj::Promise<void> run();
  void elapsed();

  kj::Timer& timer_;
  std::function<void()> ring_;
  std::optional<Instant> due_;
  kj::Own<kj::PromiseFulfiller<void>> sooner_;
  kj::Promise<void> task_;
};

}  // namespace ts
