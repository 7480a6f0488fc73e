// Threads of ours inside other people's programs: they take none of the program's signals.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace simgpu {

template <class Body>
std::thread quietThread(Body body) {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace simgpu
