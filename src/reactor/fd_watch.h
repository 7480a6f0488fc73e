// Calls back on the loop whenever a descriptor is ready; for what happens often.
#pragma once

#include <functional>

#include "reactor/libevent_port.h"

namespace ts {

// Level-triggered and registered once: unlike whenReady() it costs no system call per event. The
// callback runs inside the loop's turn: it must not wait, and it may destroy this watch as the last
// thing it does. What it throws ends the loop: it leaves the port's wait().
class FdWatch {
public:
  FdWatch(LibeventPort& port, int fd, short what, std::function<void()> onReady);
  FdWatch(const FdWatch&) = delete;  // libevent holds our address
  FdWatch& operator=(const FdWatch&) = delete;

  void pause();
  void resume();

private:
  static void fired(evutil_socket_t, short, void* self);

  LibeventPort& port_;
  std::function<void()> onReady_;
  OwnEvent event_;
};

}  // namespace ts
