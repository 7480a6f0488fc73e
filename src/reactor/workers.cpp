#include "reactor/workers.h"

#include <signal.h>

#include <system_error>

namespace ts {
namespace {

// Signals are the loop's business: no worker shall be interrupted in a driver call.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
  sigset_t before_;
};

}  // namespace

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::post(std::function<void()> job) {
  std::unique_lock lock(mutex_);
  jobs_.push_back(std::move(job));
  std::size_t idle = threads_.size() - busy_;
  if (idle < jobs_.size() && threads_.size() < limit_) {
    startThread();
  }
  lock.unlock();
  ready_.notify_one();
}

void Workers::startThread() {
  SignalsBlocked blocked;  // a new thread inherits the mask
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    // The machine has no thread left to give: the job waits for one of ours, if there is any.
    if (threads_.empty()) {
      jobs_.pop_back();
      throw;
    }
  }
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    ++busy_;
    lock.unlock();
    job();
    job = nullptr;  // before the count says that this one is idle
    lock.lock();
    --busy_;
    if (busy_ == 0 && jobs_.empty()) idle_.notify_all();
  }
}

bool Workers::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, limit, [&] { return busy_ == 0 && jobs_.empty(); });
}

std::size_t Workers::busy() const {
  std::lock_guard lock(mutex_);
  return busy_;
}

std::size_t Workers::waiting() const {
  std::lock_guard lock(mutex_);
  return jobs_.size();
}

std::size_t Workers::threads() const {
  std::lock_guard lock(mutex_);
  return threads_.size();
}

}  // namespace ts
