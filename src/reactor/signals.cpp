#include "reactor/signals.h"

#include <kj/debug.h>

#include <csignal>

namespace ts {

Signal::Signal(LibeventPort& port, int number)
    : event_(evsignal_new(
          port.base(), number,
          [](evutil_socket_t, short, void* self) { static_cast<Signal*>(self)->fired(); }, this)) {
  KJ_REQUIRE(event_ != nullptr && event_add(event_.get(), nullptr) == 0, "cannot watch signal",
             number);
}

kj::Promise<void> Signal::next() {
  if (pending_) {
    pending_ = false;
    return kj::READY_NOW;
  }
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiter_ = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

void Signal::fired() {
  if (waiter_.get() != nullptr && waiter_->isWaiting()) {
    waiter_->fulfill();
  } else {
    pending_ = true;
  }
}

void ignoreSigpipe() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace ts
