#include "simgpu/shared_mutex.h"

#include <time.h>

#include <cerrno>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace simgpu {
namespace {

// Of a dead holder's mutex ThreadSanitizer hears from pthread_mutex_lock, not from
// pthread_mutex_timedlock.
void sayLocked([[maybe_unused]] pthread_mutex_t& mutex) {
#ifdef __SANITIZE_THREAD__
  __tsan_mutex_pre_lock(&mutex, __tsan_mutex_try_lock);
  __tsan_mutex_post_lock(&mutex, __tsan_mutex_try_lock, 0);
#endif
}

}  // namespace

void SharedMutex::init() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&raw, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void SharedMutex::lock() {
  if (pthread_mutex_lock(&raw) == EOWNERDEAD) pthread_mutex_consistent(&raw);
}

bool SharedMutex::lockFor(std::uint64_t ns) {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  std::uint64_t total = static_cast<std::uint64_t>(until.tv_nsec) + ns;
  until.tv_sec += static_cast<time_t>(total / 1'000'000'000u);
  until.tv_nsec = static_cast<long>(total % 1'000'000'000u);
  int rc = pthread_mutex_timedlock(&raw, &until);
  if (rc == EOWNERDEAD) {
    pthread_mutex_consistent(&raw);
    sayLocked(raw);
  }
  return rc == 0 || rc == EOWNERDEAD;
}

void SharedMutex::unlock() {
  pthread_mutex_unlock(&raw);
}

}  // namespace simgpu
