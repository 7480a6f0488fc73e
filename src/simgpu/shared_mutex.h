// A mutex in shared memory that outlives a holder killed with it.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace simgpu {

struct SharedMutex {
  pthread_mutex_t raw;

  void init();
  // What it guards is written so that a holder may die at any point and the next can go on.
  void lock();
  bool lockFor(std::uint64_t ns);  // false: still held by another
  void unlock();
};

class SharedLock {
public:
  explicit SharedLock(SharedMutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~SharedLock() { mutex_.unlock(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

private:
  SharedMutex& mutex_;
};

}  // namespace simgpu
