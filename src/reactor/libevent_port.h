// One loop, one thread: KJ's promise queue runs on a libevent event_base.
#pragma once

#include <event2/event.h>
#include <kj/async.h>
#include <kj/exception.h>
#include <kj/io.h>
#include <kj/timer.h>

#include <memory>
#include <optional>

namespace ts {

struct EventFree {
  void operator()(event* e) const { event_free(e); }
};
using OwnEvent = std::unique_ptr<event, EventFree>;

struct EventBaseFree {
  void operator()(event_base* b) const { event_base_free(b); }
};
using OwnEventBase = std::unique_ptr<event_base, EventBaseFree>;

// A base for one thread, on epoll. Make it after daemonising: it does not survive fork().
OwnEventBase newEventBase();

// Something that waits with system calls until the loop has nothing else to do: what is written in
// one turn then leaves at once, and whoever waits for it does not wait for what can be done later.
class Flushable {
public:
  // Sends. True when a promise was fulfilled on the way: the loop must not sleep yet.
  virtual bool flush() = 0;

protected:
  ~Flushable() = default;

private:
  friend class LibeventPort;
  Flushable* nextToFlush_ = nullptr;
  bool queued_ = false;
};

// kj::EventPort over libevent. KJ drives: whenever the promise queue runs dry KJ calls wait(),
// which runs one round of libevent callbacks (ours, evhttp's, anybody's) and returns.
// A turn costs one epoll_wait(): the wake-up descriptor and the timer are edge-triggered and never
// read, and the timer is set only when an earlier deadline than the armed one appears.
class LibeventPort final : public kj::EventPort {
public:
  explicit LibeventPort(event_base* base);
  ~LibeventPort() noexcept(false);
  KJ_DISALLOW_COPY(LibeventPort);

  bool wait() override;
  bool poll() override;
  void wake() const override;  // the only member other threads may call

  event_base* base() const { return base_; }
  kj::Timer& timer() { return timer_; }

  // Resolves once when fd is ready for `what` (EV_READ or EV_WRITE). Level-triggered, so there is
  // no lost-edge hazard; dropping the promise deregisters the fd. For what happens often use
  // FdWatch.
  kj::Promise<void> whenReady(int fd, short what);

  // For callbacks of libevent: it is C, and no exception may cross it. What `f` throws leaves
  // wait() or poll() when libevent has returned.
  template <typename F>
  void guard(F&& f) {
    KJ_IF_MAYBE (e, kj::runCatchingExceptions(kj::fwd<F>(f))) {
      failed(kj::mv(*e));
    }
  }

  // flush() is called once before the loop next looks at the kernel.
  void flushLater(Flushable& what);
  void forget(Flushable& what);

private:
  bool flushAll();
  // True when a timer is due already.
  bool armTimer();
  // Nothing: one that is armed for a timer that was dropped wakes nobody.
  void setTimer(std::optional<kj::TimePoint> at);
  bool turn(int flags);
  void failed(kj::Exception&& exception);

  event_base* base_;
  const kj::MonotonicClock& clock_;
  kj::TimerImpl timer_;
  kj::AutoCloseFd wakeFd_;  // eventfd: keeps the base non-empty and carries cross-thread wakes
  kj::AutoCloseFd timerFd_;
  OwnEvent wakeEvent_;
  OwnEvent timerEvent_;
  std::optional<kj::TimePoint> armed_;
  bool woken_ = false;
  Flushable* flushHead_ = nullptr;
  kj::Maybe<kj::Exception> failure_;  // the first of a turn
};

}  // namespace ts
