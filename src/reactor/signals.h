// A signal as a promise on the loop.
#pragma once

#include "reactor/libevent_port.h"

namespace ts {

// While it lives the signal no longer has its usual effect. One loop per process may watch signals.
class Signal {
public:
  Signal(LibeventPort& port, int number);
  Signal(const Signal&) = delete;  // libevent holds our address
  Signal& operator=(const Signal&) = delete;

  // Resolves at the next delivery, at once if one came since the last. One waiter at a time.
  kj::Promise<void> next();

private:
  void fired();

  bool pending_ = false;
  kj::Own<kj::PromiseFulfiller<void>> waiter_;
  OwnEvent event_;
};

// Writing to a closed pipe shall be an error and not the end of a daemon.
void ignoreSigpipe();

}  // namespace ts
