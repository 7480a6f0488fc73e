// Who may be connected: how many connections a user may have, and until when each must greet.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace ts::node {

enum class ConnectionId : std::uint64_t {};

struct VisitorLimits {
  std::uint32_t perUser = 1024;
  kj::Duration greeting = 10 * kj::SECONDS;
};

// A connection costs a descriptor whatever it says, and everybody may connect. A user may not have
// so many that others get none, and one that says nothing loses its own.
class Visitors {
public:
  enum class Welcome {
    Served,
    Refused,  // is told why() when it has said something
    Ignored,  // its user has many that are being told already
  };

  // `overstayed` is called on the loop for one that has not greeted in time, and may drop it.
  Visitors(kj::Timer& timer, VisitorLimits limits, std::function<void(ConnectionId)> overstayed);
  KJ_DISALLOW_COPY(Visitors);

  Welcome arrive(ConnectionId id, uid_t uid);
  void greeted(ConnectionId id);
  void left(ConnectionId id);
  std::string why(uid_t uid) const;

private:
  struct Visitor {
    uid_t uid;
    bool served;
  };
  struct Count {
    std::uint32_t served = 0;
    std::uint32_t refused = 0;
  };
  void watch();
  kj::Promise<void> endOverstayed();

  kj::Timer& timer_;
  VisitorLimits limits_;
  std::function<void(ConnectionId)> overstayed_;
  std::map<ConnectionId, Visitor> visitors_;
  std::map<uid_t, Count> counts_;
  std::map<ConnectionId, kj::TimePoint> greeting_;  // numbers grow, so the first is due first
  bool watching_ = false;
  bool ending_ = false;  // in endOverstayed(), which watches on by itself
  kj::Promise<void> watch_ = nullptr;
};

}  // namespace ts::node
