#include "simgpu/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace simgpu {

void futexWait(const void* word, std::uint32_t seen, std::uint64_t ns) {
  timespec limit{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
  ::syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futexWake(const void* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace simgpu
