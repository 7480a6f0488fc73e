// A process of the bench that plays one job: takes its turn and gives it back when it is told to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "bench_common/process.h"

namespace ts::bench {

// The job's place on each of its nodes. Lives in the player's process.
class Turns {
public:
  virtual ~Turns() = default;
  virtual void ask() = 0;        // on all nodes; returns at once
  virtual void untilHeld() = 0;  // on all nodes
  virtual void yield() = 0;      // on all nodes; returns when all have recorded it
};

// A turn: ask(), then held() of it; then yield(). Times are nowNs() as the player saw them.
class Player {
public:
  explicit Player(const std::function<std::unique_ptr<Turns>()>& make);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void ask();            // returns when the requests are sent
  std::int64_t held();   // waits until the turn has come; when it came
  std::int64_t yield();  // when it began to

private:
  std::int64_t order(char verb);
  std::int64_t hear();

  int control_ = -1;
  Process process_;
};

// The mean, over `rounds` turns that pass between two players, of the time from yield to held.
std::vector<double> passBetween(Player& first, Player& second, int rounds,
                                const std::function<void()>& untilOtherWaits);

}  // namespace ts::bench
