// A loop for tests: KJ on libevent, with sockets, on the calling thread.
#pragma once

#include "reactor/libevent_io.h"

namespace ts::test {

struct Loop {
  OwnEventBase base = newEventBase();
  LibeventPort port{base.get()};
  kj::EventLoop loop{port};
  kj::WaitScope scope{loop};
  kj::Own<kj::LowLevelAsyncIoProvider> low = newLibeventIo(port);
  kj::Own<kj::AsyncIoProvider> io = kj::newAsyncIoProvider(*low);

  // Turns the loop until `done`; the meson test timeout is the only clock.
  template <typename F>
  void pumpUntil(F done) {
    while (!done()) scope.poll();
  }
  kj::Own<kj::NetworkAddress> address(kj::StringPtr text) {
    return io->getNetwork().parseAddress(text).wait(scope);
  }
};

}  // namespace ts::test
