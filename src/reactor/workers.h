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
#include <optional>
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
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    auto home = std::make_shared<Home<R>>(kj::mv(paf.fulfiller));
    post([job = std::move(job), home] {
      home->signal->rejectIfThrows([&] { home->bring(job()); });
    });
    return paf.promise.then([home] { return home->take(); });
  }

  // Blocks until no call runs or waits, at most `limit`. True: none does.
  bool drain(std::chrono::milliseconds limit);

  std::size_t busy() const;     // calls that run now
  std::size_t waiting() const;  // calls that found no thread
  std::size_t threads() const;

private:
  // Where a result waits for its loop. KJ only signals: ThreadSanitizer does not see KJ's locks,
  // and sees this one.
  template <typename R>
  struct Home {
    explicit Home(kj::Own<kj::CrossThreadPromiseFulfiller<void>> of) : signal(kj::mv(of)) {}
    void bring(R&& from) {
      {
        std::lock_guard lock(mutex);
        result.emplace(std::move(from));
      }
      signal->fulfill();
    }
    R take() {
      std::lock_guard lock(mutex);
      return std::move(*result);
    }

    kj::Own<kj::CrossThreadPromiseFulfiller<void>> signal;
    std::mutex mutex;
    std::optional<R> result;
  };

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
