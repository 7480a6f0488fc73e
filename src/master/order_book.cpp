#include "master/order_book.h"

#include "master/alarm.h"
#include "master/node_link.h"
#include "wire/greet.h"

namespace ts {

void OrderBook::give(NodeOrder order) {
  NodeRecord& node = directory_.node(nodeOf(order));
  OperationId operation = operationOf(order);
  auto& open = open_[operation];
  open = {std::move(order), monotonicNow()};
  node.open.insert(operation);
  if (node.link != nullptr && node.link->isOpen()) send(node, open);
}

void OrderBook::repeat(NodeRecord& node) {
  for (OperationId operation : node.open) send(node, open_.at(operation));
}

void OrderBook::send(NodeRecord& node, const Open& open) {
  OperationId operation = operationOf(open.order);
  const JobRecord* job = directory_.find(jobOf(open.order));
  if (job == nullptr) {
    // The job ended while its node was away. Told later, as every end is: the core is in mid-step.
    Outcome gone{.code = Outcome::Code::Gone, .cause = Cause::TargetGone};
    node.link->keep(kj::evalLater([this, &node, operation, gone] { end(node, operation, gone); }));
    return;
  }
  node.link->keep(
      ts::send(*node.link, directory_, *job, open.order)
          .then([this, &node, operation](Outcome o) { answered(node, operation, std::move(o)); },
                [this, &node, operation](kj::Exception&& e) { failed(node, operation, e); }));
}

namespace {

// Late, or met by its own repetition. Busy with another operation is an end: it was not begun.
bool stillRuns(OperationId operation, const Outcome& outcome) {
  if (outcome.code != Outcome::Code::Refused) return false;
  if (outcome.cause == Cause::Overdue) return true;
  return outcome.cause == Cause::Busy && outcome.need == std::uint64_t(operation);
}

}  // namespace

void OrderBook::answered(NodeRecord& node, OperationId operation, Outcome outcome) {
  node.link->heard();
  if (!stillRuns(operation, outcome)) return end(node, operation, std::move(outcome));
  if (outcome.cause != Cause::Overdue) return;
  ranLate(node, operation, outcome.members);
  ends_.overdue(operation, std::move(outcome.detail));
}

void OrderBook::ranLate(NodeRecord& node, OperationId operation,
                        const std::vector<MemberFact>& about) {
  auto open = open_.find(operation);
  if (open == open_.end()) return;  // its end has overtaken this
  const NodeOrder& order = open->second.order;
  Late late{node.id, jobOf(order), verbOf(order), {}, open->second.givenAt};
  for (const MemberFact& fact : about) {
    auto* member = directory_.findMember(node, std::uint64_t(fact.member));
    if (member != nullptr) late.pids.push_back(member->pid);
  }
  late_.insert_or_assign(operation, std::move(late));
}

void OrderBook::failed(NodeRecord& node, OperationId operation, const kj::Exception& exception) {
  // Stays open: whether it was done is asked when the node returns.
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  // What its node cannot take in says nothing about the job: a driver speaks in outcomes only. Who
  // holds devices for it is not kept waiting for ever: the core counts it where a slice begins.
  bool unknown = exception.getType() == kj::Exception::Type::UNIMPLEMENTED;
  end(node, operation,
      {.code = unknown ? Outcome::Code::Failed : Outcome::Code::Refused,
       .cause = unknown ? Cause::Unsupported : Cause::NodeSuspect,
       .lasting = unknown,
       .detail = sentenceOf(exception)});
}

void OrderBook::finishedLate(NodeRecord& node, OperationId operation, Outcome outcome) {
  if (node.open.count(operation) != 0) end(node, operation, std::move(outcome));
}

void OrderBook::forget(NodeRecord& node) {
  for (OperationId operation : node.open) {
    open_.erase(operation);
    late_.erase(operation);
  }
  node.open.clear();
}

void OrderBook::end(NodeRecord& node, OperationId operation, Outcome outcome) {
  auto it = open_.find(operation);
  if (it == open_.end()) return;  // a repeated order: its first end has been told
  Open open = std::move(it->second);
  open_.erase(it);
  late_.erase(operation);
  node.open.erase(operation);
  auto took = monotonicNow() - open.givenAt;
  ends_.ended(open.order, operation, std::move(outcome), took);
}

}  // namespace ts
