// Orders that nodes have not finished yet.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ids.h"

namespace ts {

enum class OrderKind {
  Prepare,
  DropBooking,
  Quiesce,
  Release,
  Save,
  Restore,
  Grant,
  EndSlice,
  Discard,
  Kill
};

struct Order {
  OrderKind kind{};
  NodeId node{};
  JobId job{};
  MemberId member{};
  JobId forWhom{};  // whose switch moves this: it is told the bytes
  Epoch epoch;
  std::vector<RequestId> requests;
  bool overdue = false;
};

class Orders {
public:
  OperationId add(Order order) {
    open_.emplace(OperationId(++last_), std::move(order));
    return OperationId(last_);
  }
  Order* find(OperationId id) {
    auto it = open_.find(id);
    return it == open_.end() ? nullptr : &it->second;
  }
  std::optional<Order> take(OperationId id) {
    auto it = open_.find(id);
    if (it == open_.end()) return std::nullopt;
    Order order = std::move(it->second);
    open_.erase(it);
    return order;
  }
  // A dead node finishes nothing any more.
  void forget(NodeId node) {
    std::erase_if(open_, [&](const auto& e) { return e.second.node == node; });
  }

private:
  std::unordered_map<OperationId, Order> open_;
  std::uint64_t last_ = 0;
};

}  // namespace ts
