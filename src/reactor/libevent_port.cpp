#include "reactor/libevent_port.h"

#include <kj/debug.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace ts {
namespace {

// The promise owns the event: fulfilled when libevent fires, deregistered when dropped.
class ReadyAdapter {
public:
  ReadyAdapter(kj::PromiseFulfiller<void>& fulfiller, event_base* base, int fd, short what)
      : fulfiller_(fulfiller), event_(event_new(base, fd, what, &ReadyAdapter::fired, this)) {
    KJ_REQUIRE(event_ != nullptr, "event_new failed", fd);
    KJ_REQUIRE(event_add(event_.get(), nullptr) == 0, "event_add failed", fd);
  }

private:
  static void fired(evutil_socket_t, short, void* self) {
    static_cast<ReadyAdapter*>(self)->fulfiller_.fulfill();
  }
  kj::PromiseFulfiller<void>& fulfiller_;
  OwnEvent event_;
};

// One look at the kernel. EVLOOP_NONBLOCK alone would look again after events.
constexpr int kLook = EVLOOP_ONCE | EVLOOP_NONBLOCK;

OwnEvent watchEdge(event_base* base, int fd, event_callback_fn callback, void* argument) {
  OwnEvent event(event_new(base, fd, EV_READ | EV_PERSIST | EV_ET, callback, argument));
  KJ_REQUIRE(event != nullptr, "event_new failed", fd);
  KJ_REQUIRE(event_add(event.get(), nullptr) == 0, "event_add failed", fd);
  return event;
}

}  // namespace

OwnEventBase newEventBase() {
  std::unique_ptr<event_config, decltype(&event_config_free)> config(event_config_new(),
                                                                     &event_config_free);
  KJ_REQUIRE(config != nullptr, "event_config_new failed");
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
  // No PRECISE_TIMER: it costs a timerfd_settime() in every turn. The port has its own timer.
  event_config_require_features(config.get(), EV_FEATURE_ET);
  OwnEventBase base(event_base_new_with_config(config.get()));
  KJ_REQUIRE(base != nullptr, "event_base_new_with_config failed");
  return base;
}

LibeventPort::LibeventPort(event_base* base)
    : base_(base), clock_(kj::systemPreciseMonotonicClock()), timer_(clock_.now()) {
  int fd;
  KJ_SYSCALL(fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  wakeFd_ = kj::AutoCloseFd(fd);
  KJ_SYSCALL(fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  timerFd_ = kj::AutoCloseFd(fd);
  wakeEvent_ = watchEdge(
      base_, wakeFd_,
      [](int, short, void* self) { static_cast<LibeventPort*>(self)->woken_ = true; }, this);
  timerEvent_ = watchEdge(
      base_, timerFd_,
      [](int, short, void* self) { static_cast<LibeventPort*>(self)->armed_.reset(); }, this);
}

LibeventPort::~LibeventPort() noexcept(false) = default;

bool LibeventPort::wait() {
  bool busy = flushAll();
  busy |= armTimer();
  return turn(busy ? kLook : EVLOOP_ONCE);
}

bool LibeventPort::poll() {
  flushAll();
  return turn(kLook);
}

void LibeventPort::wake() const {
  uint64_t one = 1;
  // EAGAIN would mean 2^64 wakes that nobody read.
  KJ_NONBLOCKING_SYSCALL(::write(wakeFd_.get(), &one, sizeof(one)));
}

kj::Promise<void> LibeventPort::whenReady(int fd, short what) {
  return kj::newAdaptedPromise<void, ReadyAdapter>(base_, fd, what);
}

void LibeventPort::flushLater(Flushable& what) {
  if (what.queued_) return;
  what.queued_ = true;
  what.nextToFlush_ = flushHead_;
  flushHead_ = &what;
}

void LibeventPort::forget(Flushable& what) {
  if (!what.queued_) return;
  Flushable** link = &flushHead_;
  while (*link != &what) link = &(*link)->nextToFlush_;
  *link = what.nextToFlush_;
  what.queued_ = false;
}

bool LibeventPort::flushAll() {
  bool fulfilled = false;
  while (flushHead_ != nullptr) {
    Flushable& next = *flushHead_;
    forget(next);
    fulfilled |= next.flush();
  }
  return fulfilled;
}

bool LibeventPort::armTimer() {
  std::optional<kj::TimePoint> next;
  KJ_IF_MAYBE (due, timer_.nextEvent()) {
    if (*due <= timer_.now()) return true;
    next = *due;
  }
  if (next != armed_) setTimer(next);
  return false;
}

void LibeventPort::setTimer(std::optional<kj::TimePoint> at) {
  itimerspec spec{};
  if (at) {
    int64_t ns = (*at - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS;
    constexpr int64_t kSecond = 1'000'000'000;
    spec.it_value = {time_t(ns / kSecond), long(ns % kSecond)};
  }
  KJ_SYSCALL(::timerfd_settime(timerFd_, TFD_TIMER_ABSTIME, &spec, nullptr));
  armed_ = at;
}

void LibeventPort::failed(kj::Exception&& exception) {
  if (failure_ == nullptr) failure_ = kj::mv(exception);
}

bool LibeventPort::turn(int flags) {
  KJ_ASSERT(event_base_loop(base_, flags) >= 0, "event_base_loop failed");
  KJ_IF_MAYBE (e, failure_) {
    auto exception = kj::mv(*e);
    failure_ = nullptr;
    kj::throwFatalException(kj::mv(exception));
  }
  timer_.advanceTo(clock_.now());
  bool woken = woken_;
  woken_ = false;
  return woken;
}

}  // namespace ts
