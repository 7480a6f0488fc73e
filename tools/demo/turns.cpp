#include "turns.h"

namespace demo {

void Turns::acquire(const std::string& phase) {
  if (slice_) return;
  slice_.emplace(client_, phase);
  const ts_grant& grant = slice_->grant();
  ++counts_.slices;
  counts_.switches += grant.moved_bytes > 0;
  counts_.movedBytes += grant.moved_bytes;
  counts_.waited += std::chrono::microseconds(grant.waited_us);
}

void Turns::yield() {
  if (!slice_) return;
  slice_->yield();
  slice_.reset();
}

}  // namespace demo
