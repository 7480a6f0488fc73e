#include "master/alarm.h"

#include <kj/debug.h>

namespace ts {

Instant monotonicNow() {
  return Instant(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

std::uint64_t unixNowUs() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

namespace {

kj::TimePoint kjTime(Instant at) {
  return kj::origin<kj::TimePoint>() + at.time_since_epoch().count() * kj::MICROSECONDS;
}

}  // namespace

Alarm::Alarm(kj::Timer& timer, std::function<void()> ring)
    : timer_(timer), ring_(std::move(ring)), task_(nullptr) {
  task_ = run().eagerlyEvaluate([](kj::Exception&& e) { KJ_LOG(FATAL, "the alarm failed", e); });
}

void Alarm::noLaterThan(Instant at) {
  if (due_ && *due_ <= at) return;
  due_ = at;
  sooner_->fulfill();
}

kj::Promise<void> Alarm::run() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  sooner_ = kj::mv(paf.fulfiller);
  kj::Promise<void> next = kj::mv(paf.promise);
  if (due_) next = next.exclusiveJoin(timer_.atTime(kjTime(*due_)));
  return next.then([this] {
    elapsed();
    return run();
  });
}

void Alarm::elapsed() {
  if (!due_ || *due_ > monotonicNow()) return;
  due_.reset();
  ring_();
}

}  // namespace ts
