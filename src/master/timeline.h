// Where the time of a switch goes: spans that follow each other and sum to the whole.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/action.h"
#include "core/event.h"
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
  void happened(const Event& event);
  void ordered(const Action& action, Instant now);
  // What an order's end completes, if it is the last of a switch.
  std::optional<Spans> ended(const NodeOrder& order, const Outcome& outcome, Instant now);

private:
  struct Switch {
    Instant prepares{};
    std::map<NodeId, OperationId> booked = {};  // or asked to book
    std::set<MemberId> outgoing = {};
    std::optional<Instant> started = {}, saves = {}, saved = {};
    std::optional<Epoch> epoch = {};  // once it is granted
    Instant grants{};
    Duration waited{};
    std::map<NodeId, bool> letGo = {};  // by the nodes it was granted on

    bool movesOut(MemberId member) const;
    bool isUnderWay() const { return started || !booked.empty(); }
  };
  using Switches = std::map<JobId, Switch>;

  void on(const JobEnded& event) { switches_.erase(event.job); }
  void on(const NodeDied& event);
  template <class Rest>
  void on(const Rest&) {}

  void on(const Prepare& order, Instant now);
  void on(const DropBooking& order, Instant now);
  void on(const Save& order, Instant now);
  void on(const Grant& order, Instant now);
  void on(const Notice& notice, Instant now);
  template <class Rest>
  void on(const Rest&, Instant) {}

  std::optional<Spans> after(const Prepare& order, const Outcome& outcome, Instant now);
  std::optional<Spans> after(const Save& order, const Outcome& outcome, Instant now);
  std::optional<Spans> after(const Grant& order, const Outcome& outcome, Instant now);
  std::optional<Spans> after(const EndSlice& order, const Outcome& outcome, Instant now);
  template <class Rest>
  std::optional<Spans> after(const Rest&, const Outcome&, Instant) {
    return std::nullopt;
  }

  Switches::iterator granted(JobId job, const Epoch& epoch);
  void unbook(Switches::iterator found, NodeId node);
  static Spans spans(JobId job, const Switch& done, Instant now);

  Switches switches_;  // by whom they bring in
};

}  // namespace ts
