// Tells when processes end, by their pidfds.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "node/process.h"
#include "reactor/fd_watch.h"
#include "reactor/pidfd.h"

namespace ts::node {

class Watch {
public:
  Watch(LibeventPort& port, std::function<void(const Identity&)> ended)
      : port_(port), ended_(std::move(ended)) {}
  KJ_DISALLOW_COPY(Watch);

  // Told once, later; watching twice is watching once. False when it has ended already, or its number
  // has been given to another: then nothing will be told.
  bool add(const Identity& identity);
  // -1: not watched. For signals to exactly this process.
  int pidfd(const Identity& identity) const;

private:
  struct One {
    kj::AutoCloseFd pidfd;
    std::unique_ptr<FdWatch> event;  // first to go
  };
  void fired(Identity identity);

  LibeventPort& port_;
  std::function<void(const Identity&)> ended_;
  std::map<Identity, One> watched_;
};

}  // namespace ts::node
