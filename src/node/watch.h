// Tells when processes end, by their pidfds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "node/held_process.h"
#include "reactor/fd_watch.h"

namespace ts::node {

class Watch {
public:
  Watch(LibeventPort& port, std::function<void(const Identity&)> ended)
      : port_(port), ended_(std::move(ended)) {}
  KJ_DISALLOW_COPY(Watch);

  // Told once, later; watching twice is watching once. False when it has ended already, or its
  // number has been given to another: then nothing will be told. Throws when no descriptor is left.
  bool add(const Identity& identity);
  // For signals and calls to exactly this process. Nothing: it is not watched, or has ended.
  std::optional<HeldProcess> held(const Identity& identity) const;

private:
  struct One {
    HeldProcess process;
    std::unique_ptr<FdWatch> event;  // first to go
  };
  void fired(Identity identity);

  LibeventPort& port_;
  std::function<void(const Identity&)> ended_;
  std::map<Identity, One> watched_;
};

}  // namespace ts::node
