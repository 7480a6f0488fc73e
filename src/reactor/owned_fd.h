// A descriptor as kj::LowLevelAsyncIoProvider hands it over: perhaps ours to close, perhaps not.
#pragma once

#include <fcntl.h>
#include <kj/async-io.h>
#include <kj/debug.h>
#include <unistd.h>

namespace ts {

class OwnedFd {
public:
  OwnedFd(int fd, kj::uint flags)
      : fd_(fd), owned_(flags & kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP) {
    if (!(flags & kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK)) {
      KJ_SYSCALL(::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK));
    }
    if (owned_ && !(flags & kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC)) {
      KJ_SYSCALL(::fcntl(fd_, F_SETFD, FD_CLOEXEC));
    }
  }
  ~OwnedFd() {
    if (owned_) ::close(fd_);
  }
  KJ_DISALLOW_COPY(OwnedFd);
  int get() const { return fd_; }

private:
  int fd_;
  bool owned_;
};

}  // namespace ts
