#include "log/throttle.h"

#include <utility>

namespace ts {

bool Throttle::admits(Line& line, Time now) {
  if (now < quietUntil_) {
    ++untold_;
    return false;
  }
  quietUntil_ = now + std::chrono::seconds(1);
  if (untold_ > 0) line.add("untold", std::exchange(untold_, 0));
  return true;
}

}  // namespace ts
