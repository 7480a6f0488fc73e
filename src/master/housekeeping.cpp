#include "master/housekeeping.h"

#include <algorithm>

#include "wire/greet.h"

namespace ts {

Housekeeping::Housekeeping(kj::Timer& timer, Shell& shell, History& history)
    : timer_(timer), shell_(shell), history_(history), tasks_(*this) {
  tasks_.add(round());
}

kj::Promise<void> Housekeeping::round() {
  return timer_.afterDelay(shell_.config().heartbeat.count() * kj::MICROSECONDS).then([this] {
    buryTheDead();
    tasks_.add(history_.store().then([this] { tellTrouble(); }));
    return round();
  });
}

// What is told is a line of the history itself: so only once.
void Housekeeping::tellTrouble() {
  std::string why = history_.takeTrouble();
  if (why.empty()) return;
  shell_.events().log().error(
      Line("store-failed").add("lost_lines", history_.lost()).add("why", why));
}

// While more nodes are away than here, of those that are not dead, the master is the one that is
// cut off.
void Housekeeping::buryTheDead() {
  Duration limit = shell_.config().deadAfter;
  if (limit == Duration{0}) return;
  const auto& nodes = shell_.directory().nodes();
  auto away = [](const NodeRecord* node) { return node->state == NodeState::Suspect; };
  auto suspects = std::size_t(std::ranges::count_if(nodes, away));
  auto up = std::size_t(std::ranges::count_if(
      nodes, [](const NodeRecord* node) { return node->state == NodeState::Up; }));
  if (suspects > up) return;
  for (NodeRecord* node : nodes)
    if (away(node) && shell_.now() - node->since > limit) shell_.died(*node);
}

void Housekeeping::taskFailed(kj::Exception&& exception) {
  shell_.events().log().error(Line("housekeeping-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts
