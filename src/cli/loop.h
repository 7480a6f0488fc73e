// The loop of one run of tsctl, with its sockets and its patience.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>

#include <chrono>
#include <string>

#include "reactor/libevent_io.h"

namespace ts::cli {

struct Loop {
  OwnEventBase base = newEventBase();
  LibeventPort port{base.get()};
  kj::EventLoop events{port};
  kj::WaitScope scope{events};
  kj::Own<kj::LowLevelAsyncIoProvider> low = newLibeventIo(port);
  kj::Own<kj::AsyncIoProvider> io = kj::newAsyncIoProvider(*low);
};

// Thrown by within() when the time is over.
struct Late {};

// Waits for the promise, but not longer than `limit`.
template <class T>
T within(Loop& loop, std::chrono::microseconds limit, kj::Promise<T> promise) {
  bool late = false;
  auto alarm = loop.port.timer()
                   .afterDelay(limit.count() * kj::MICROSECONDS)
                   .then([&late]() -> kj::Promise<T> {
                     late = true;
                     return KJ_EXCEPTION(OVERLOADED, "late");
                   });
  try {
    return promise.exclusiveJoin(kj::mv(alarm)).wait(loop.scope);
  } catch (const kj::Exception&) {
    if (late) throw Late{};
    throw;
  }
}

}  // namespace ts::cli
