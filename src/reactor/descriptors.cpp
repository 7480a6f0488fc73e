#include "reactor/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace ts {
namespace {

constexpr rlim_t kShare = 4;  // a participant costs two, and there is always another user

}  // namespace

std::size_t affordable(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<std::size_t>(limit.rlim_cur / kShare, 1, wanted);
}

}  // namespace ts
