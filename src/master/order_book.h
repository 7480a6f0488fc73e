// The orders that have no end yet: sent when their node can be reached, repeated when it returns.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "master/directory.h"
#include "master/order_request.h"

namespace ts {

class OrderBook {
public:
  // `ended` gets every order once, with its outcome in the core's ids; `overdue` when a node says
  // that one is late and still running. Both are called from the loop, never from within give().
  struct Ends {
    std::function<void(const NodeOrder&, OperationId, Outcome, Duration took)> ended;
    std::function<void(OperationId, std::string detail)> overdue;
  };
  OrderBook(Directory& directory, Ends ends) : directory_(directory), ends_(std::move(ends)) {}

  void give(NodeOrder order);
  // The node has a session again: all that is open there goes out, in the order it was given. A
  // node answers what it knows from its record.
  void repeat(NodeRecord& node);
  // A node tells the late end of an order that it had answered with busy or overdue.
  void finishedLate(NodeRecord& node, OperationId operation, Outcome outcome);
  void forget(NodeRecord& node);  // a dead node finishes nothing any more
  void clear() {
    open_.clear();
    late_.clear();
  }
  // What nodes have said to be past its deadline and still running: the oldest first.
  struct Late {
    NodeId node{};
    JobId job{};
    std::string_view call;           // as verbOf() has it
    std::vector<std::int32_t> pids;  // of the processes that the call was about when it got late
    Instant since;                   // when it was given
  };
  const std::map<OperationId, Late>& late() const { return late_; }
  std::size_t open() const { return open_.size(); }

private:
  struct Open {
    NodeOrder order;
    Instant givenAt;
  };
  void send(NodeRecord& node, const Open& open);
  void answered(NodeRecord& node, OperationId operation, Outcome outcome);
  void failed(NodeRecord& node, OperationId operation, const kj::Exception& exception);
  void end(NodeRecord& node, OperationId operation, Outcome outcome);
  void ranLate(NodeRecord& node, OperationId operation, const std::vector<MemberFact>& about);

  Directory& directory_;
  Ends ends_;
  std::unordered_map<OperationId, Open> open_;
  std::map<OperationId, Late> late_;
};

}  // namespace ts
