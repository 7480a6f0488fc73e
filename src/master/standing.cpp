#include "master/standing.h"

#include "wire/greet.h"

namespace ts {
namespace {

constexpr const char* kPaused = "paused";
constexpr const char* kDrained = "drained";

void put(std::set<std::string>& names, const std::string& name, bool on) {
  if (on)
    names.insert(name);
  else
    names.erase(name);
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

}  // namespace

Standing::Standing(Shell& shell, Store& store, Workers& workers)
    : shell_(shell),
      store_(store),
      workers_(workers),
      written_(kj::Promise<void>(kj::READY_NOW).fork()) {
  for (const StandingOrder& order : store_.standingOrders())
    (order.what == kPaused ? paused_ : drained_).insert(order.name);
}

void Standing::apply() {
  if (paused_.empty() && drained_.empty()) return;
  shell_.events().log().warning(
      Line("still-ordered").add("paused", joined(paused_)).add("drained", joined(drained_)));
  for (const auto& group : paused_) pauseNow(group, true);
  for (const auto& node : drained_) drainNow(shell_.directory().node(node), true);
}

kj::Promise<void> Standing::pause(const std::string& group, bool on) {
  put(paused_, group, on);
  pauseNow(group, on);
  return keep({kPaused, group}, on);
}

kj::Promise<void> Standing::drain(NodeRecord& node, bool on) {
  put(drained_, node.name, on);
  drainNow(node, on);
  return keep({kDrained, node.name}, on);
}

void Standing::pauseNow(const std::string& group, bool on) {
  shell_.feed(GroupPaused{shell_.adoptGroup(group), on});
}

void Standing::drainNow(NodeRecord& node, bool on) {
  node.drained = on;
  shell_.feed(NodeDrained{node.id, on});
}

kj::Promise<void> Standing::keep(StandingOrder order, bool on) {
  auto done = written_.addBranch()
                  .then([this, order, on] {
                    return workers_.call<int>([&store = store_, order, on] {
                      store.keep(order, on);
                      return 0;
                    });
                  })
                  .ignoreResult()
                  .fork();
  written_ = done.addBranch().catch_([](kj::Exception&&) {}).fork();  // told by the other branch
  return done.addBranch().catch_([this, order](kj::Exception&& e) {
    shell_.events().log().error(Line("store-failed").add("why", sentenceOf(e)));
    kj::throwFatalException(
        sentence("it is done, but a restart of the master forgets it: " + sentenceOf(e)));
  });
}

}  // namespace ts
