// What is done now and then, away from any grant: the history to disk, nodes that have been away
// too long.
#pragma once

#include <kj/timer.h>

#include "master/history.h"
#include "master/shell.h"

namespace ts {

class Housekeeping final : private kj::TaskSet::ErrorHandler {
public:
  Housekeeping(kj::Timer& timer, Shell& shell, History& history);

private:
  kj::Promise<void> round();
  void buryTheDead();
  void tellTrouble();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer_;
  Shell& shell_;
  History& history_;
  kj::TaskSet tasks_;
};

}  // namespace ts
