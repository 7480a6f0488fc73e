#include "master/node_link.h"

#include "master/alarm.h"
#include "wire/greet.h"

namespace ts {

NodeLink::NodeLink(wire::NodeDaemon::Client daemon, kj::Timer& timer, std::function<Pulse()> pulse,
                   std::function<void(std::string why)> hangUp)
    : daemon_(kj::mv(daemon)),
      timer_(timer),
      pulse_(std::move(pulse)),
      hangUp_(std::move(hangUp)),
      lastHeard_(now()),
      lastBeat_(lastHeard_),
      tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
  keep(beat());
}

void NodeLink::open() {
  open_ = true;
  auto backlog = std::move(backlog_);
  for (auto& send : backlog) send();
}

void NodeLink::whenOpen(std::function<void()> send) {
  if (open_) return send();
  backlog_.push_back(std::move(send));
}

void NodeLink::retire(std::string why) {
  retire();
  hangUp(std::move(why));
}

void NodeLink::retire() {
  tasks_ = nullptr;
  owed_.give();
}

Instant NodeLink::now() {
  return monotonicNow();
}

kj::Promise<void> NodeLink::beat() {
  return timer_.afterDelay(pulse_().interval.count() * kj::MICROSECONDS).then([this] {
    judge();
    owed_.give();
    // The answer counts as a sign of life too: a node may be too busy to beat by itself.
    keep(daemon_.heartbeatRequest(capnp::MessageSize{8, 0}).send().then([this](auto&&) {
      heard();
    }));
    return beat();
  });
}

void NodeLink::judge() {
  Pulse pulse = pulse_();
  Duration silence = now() - lastHeard_;
  // If this master itself stood still, what nodes said meanwhile lies unread in its sockets.
  bool stoodStill = now() - lastBeat_ > 2 * pulse.interval;
  lastBeat_ = now();
  if (stoodStill || silence <= pulse.suspectAfter) return;
  hangUp("nothing heard for " + std::to_string(silence / std::chrono::milliseconds(1)) + " ms");
}

void NodeLink::taskFailed(kj::Exception&& exception) {
  // A lost connection ends the session by itself; an order that failed has its own handler.
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  hangUp("a call failed: " + sentenceOf(exception));
}

}  // namespace ts
