// Threads for calls that block for seconds; results come home to the loop that asked.
#pragma once

#include <kj/async.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ts {

// Starts a thread when a call comes and none is idle, up to `limit`; beyond that calls wait in
// order. So a call that hangs delays nobody else. Threads stay for the next call and never wake by
// themselves.
class Workers {
public:
  explicit Workers(std::size_t limit = 64) : limit_(limit) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Drains before it stops: no call is abandoned midway. Waits for the slowest of them; drain()
  // first where that may be for ever.
  ~Workers();

  // Dropping the promise does not stop the job: whatever the job refers to must outlive the
  // Workers. An exception leaving the job rejects the promise.
  template <typename R>
  kj::Promise<R> call(std::function<R()> job) {
    auto paf = kj::newPromiseAndCrossThreadFulfiller<R>();
    // std::function wants to be copyable, kj::Own is not.
    auto home =
        std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<R>>>(kj::mv(paf.fulfiller));
    post([job = std::move(job), home] {
      (*home)->rejectIfThrows([&] { (*home)->fulfill(job()); });
    });
    return kj::mv(paf.promise);
  }

  // Blocks until no call runs or waits, at most `limit`. True: none does.
  bool drain(std::chrono::milliseconds limit);

  std::size_t busy() const;     // calls that run now
  std::size_t waiting() const;  // calls that found no thread
  std::size_t threads() const;

private:
  void post(std::function<void()> job);
  void startThread();
  void run();

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> jobs_;
  std::size_t busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ts
