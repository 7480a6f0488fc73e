// What is due when: one instant per job and reason.
#pragma once

#include <optional>
#include <set>
#include <tuple>

#include "ids.h"

namespace ts {

struct Timer {
  enum class Kind {
    Hold,    // the holder is asked to yield
    Gang,    // a slice stands still
    Retry,   // a back-off is over
    Broken,  // a broken job has had its grace
    Grace,   // a recovering master knows the order well enough; of no job
  };
  Instant at;
  Kind kind;
  JobId job;
  bool operator<(const Timer& other) const {
    return std::tie(at, kind, job) < std::tie(other.at, other.kind, other.job);
  }
};

class Timers {
public:
  void arm(const Timer& timer) { due_.insert(timer); }
  void disarm(const Timer& timer) { due_.erase(timer); }
  std::optional<Instant> next() const {
    return due_.empty() ? std::nullopt : std::optional(due_.begin()->at);
  }
  // Takes the first that is due.
  std::optional<Timer> take(Instant now) {
    if (due_.empty() || due_.begin()->at > now) return std::nullopt;
    Timer timer = *due_.begin();
    due_.erase(due_.begin());
    return timer;
  }

private:
  std::set<Timer> due_;
};

}  // namespace ts
