#include "lock_queue.h"

#include <algorithm>

#include "event.h"

namespace ts {

Place placeFor(const GroupConfig& config, JobId job, int priority, std::uint64_t ticket,
               Instant since) {
  priority = std::clamp(priority, -kMaxPriority, kMaxPriority);  // a node may have told anything
  if (config.policy == Policy::Fifo) return {0, ticket, job};
  if (config.ageing <= Duration::zero()) return {-std::int64_t(priority), ticket, job};
  std::int64_t head = std::int64_t(priority) * config.ageing.count();
  return {since.time_since_epoch().count() - head, ticket, job};
}

Job* LockQueue::frontBeside(const Job& job) const {
  for (const Entry& e : entries_) {
    if (e.job != &job) return e.job;
  }
  return nullptr;
}

}  // namespace ts
