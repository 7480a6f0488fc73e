#include "node/visitors.h"

#include <vector>

namespace ts::node {
namespace {

constexpr std::uint32_t kToldAtOnce = 8;

}  // namespace

Visitors::Visitors(kj::Timer& timer, VisitorLimits limits,
                   std::function<void(ConnectionId)> overstayed)
    : timer_(timer), limits_(limits), overstayed_(std::move(overstayed)) {}

Visitors::Welcome Visitors::arrive(ConnectionId id, uid_t uid) {
  auto& count = counts_[uid];
  bool served = count.served < limits_.perUser;
  if (!served && count.refused >= kToldAtOnce) return Welcome::Ignored;
  ++(served ? count.served : count.refused);
  visitors_[id] = {uid, served};
  greeting_.emplace(id, timer_.now() + limits_.greeting);
  if (!watching_) watch();
  return served ? Welcome::Served : Welcome::Refused;
}

void Visitors::greeted(ConnectionId id) {
  if (greeting_.erase(id) == 0 || !greeting_.empty() || ending_) return;
  watching_ = false;
  watch_ = nullptr;  // a timer that is left behind wakes the loop
}

void Visitors::left(ConnectionId id) {
  greeted(id);
  auto it = visitors_.find(id);
  if (it == visitors_.end()) return;
  auto& count = counts_[it->second.uid];
  --(it->second.served ? count.served : count.refused);
  if (count.served == 0 && count.refused == 0) counts_.erase(it->second.uid);
  visitors_.erase(it);
}

std::string Visitors::why(uid_t uid) const {
  return "uid " + std::to_string(uid) + " has " + std::to_string(limits_.perUser) +
         " connections to this node daemon, and may have no more: end some, or raise "
         "connections_per_user in node.toml";
}

void Visitors::watch() {
  watching_ = true;
  watch_ = timer_.atTime(greeting_.begin()->second)
               .then([this] { return endOverstayed(); })
               .eagerlyEvaluate(nullptr);
}

kj::Promise<void> Visitors::endOverstayed() {
  ending_ = true;
  std::vector<ConnectionId> late;
  for (auto [id, due] : greeting_) {
    if (due <= timer_.now()) late.push_back(id);
  }
  for (auto id : late) {
    greeting_.erase(id);
    overstayed_(id);
  }
  ending_ = false;
  watching_ = !greeting_.empty();
  if (!watching_) return kj::READY_NOW;
  return timer_.atTime(greeting_.begin()->second).then([this] { return endOverstayed(); });
}

}  // namespace ts::node
