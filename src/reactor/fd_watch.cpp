#include "reactor/fd_watch.h"

#include <kj/debug.h>

namespace ts {

FdWatch::FdWatch(LibeventPort& port, int fd, short what, std::function<void()> onReady)
    : port_(port),
      onReady_(std::move(onReady)),
      event_(event_new(port.base(), fd, short(what | EV_PERSIST), &FdWatch::fired, this)) {
  KJ_REQUIRE(event_ != nullptr, "event_new failed", fd);
  resume();
}

void FdWatch::fired(evutil_socket_t, short, void* self) {
  auto& watch = *static_cast<FdWatch*>(self);
  watch.port_.guard([&] { watch.onReady_(); });
}

void FdWatch::pause() {
  event_del(event_.get());
}

void FdWatch::resume() {
  KJ_REQUIRE(event_add(event_.get(), nullptr) == 0, "event_add failed", event_get_fd(event_.get()));
}

}  // namespace ts
