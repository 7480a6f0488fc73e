// Where the time of a switch goes: spans that follow each other and sum to the whole.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/action.h"
#include "master/order_request.h"

namespace ts {

// Of one turn that needed a switch, from the acquire to the last node's answer to the grant.
struct Spans {
  JobId job{};
  Duration queue{};    // until its switch began
  Duration prepare{};  // until every node had booked
  Duration lock{};     // until barrier 1: no member of those who leave runs
  Duration save{};     // until the commit point: all that must go is saved and measured as gone
  Duration
      restore{};  // until barrier 2; what was restored before the commit point took no time of it
  Duration unlock{};  // until the members run and their callers have their answer
  Duration total() const { return queue + prepare + lock + save + restore + unlock; }
};

class Timeline {
public:
  void ordered(const Action& action, Instant now);
  // What an order's end completes, if it is the last of a switch.
  std::optional<Spans> ended(const NodeOrder& order, Instant now);

private:
  struct Switch {
    Instant prepares, started, saves, saved, grants;
    Duration waited{};
    std::set<MemberId> outgoing;
    std::optional<Epoch> epoch;  // once it is granted
    unsigned open = 0;           // grants without an answer
  };
  void on(const Prepare& order, Instant now);
  void on(const Save& order, Instant now);
  void on(const Grant& order, Instant now);
  void on(const Notice& notice, Instant now);
  template <class Rest>
  void on(const Rest&, Instant) {}
  Switch* ofOutgoing(MemberId member);
  static Spans spans(JobId job, const Switch& done, Instant now);

  std::map<JobId, Switch> switches_;  // by whom they bring in
};

}  // namespace ts
