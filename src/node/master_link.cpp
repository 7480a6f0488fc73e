#include "node/master_link.h"

#include <kj/debug.h>

#include <algorithm>
#include <random>
#include <utility>

namespace ts::node {
namespace {

std::uint64_t randomNumber() {
  std::random_device random;
  return (std::uint64_t(random()) << 32) | random();
}

}  // namespace

MasterLink::MasterLink(MasterLinkConfig config, kj::Network& network, kj::Timer& timer, Auth& auth,
                       Offload offload, MasterLinkHost& host, Log& log)
    : config_(std::move(config)),
      network_(network),
      timer_(timer),
      auth_(auth),
      offload_(std::move(offload)),
      host_(host),
      log_(log),
      instance_(randomNumber()),
      delay_(config_.retryFirst),
      heard_(timer.now()),
      tasks_(*this) {}

void MasterLink::start() {
  if (config_.master.empty()) return;
  running_ = run().eagerlyEvaluate([this](kj::Exception&& e) { taskFailed(kj::mv(e)); });
}

void MasterLink::stop() {
  running_ = kj::READY_NOW;
  state_ = State::Down;
  why_ = "this node daemon is stopping";
  answers_.drop();
  session_ = nullptr;
  link_ = nullptr;
}

std::string MasterLink::whyDown() const {
  if (state_ == State::Alone) {
    return "this node daemon runs alone: set `master` in its configuration to take turns";
  }
  return "no master at " + config_.master + ": " + why_ + "; start tsmasterd there";
}

kj::Promise<void> MasterLink::run() {
  if (state_ != State::Down) state_ = State::Connecting;
  return attempt().catch_([this](kj::Exception&& e) { return lost(kj::mv(e)); }).then([this] {
    return run();
  });
}

// Ends only with an exception: why the line is down.
kj::Promise<void> MasterLink::attempt() {
  auto entering =
      network_.parseAddress(config_.master)
          .then([](kj::Own<kj::NetworkAddress> address) {
            return address->connect().attach(kj::mv(address));
          })
          .then([this](kj::Own<kj::AsyncIoStream> stream) {
            auto& link = link_.emplace(kj::heap<Link>(kj::mv(stream), Link::Side::Caller));
            return greet(link->peer<wire::Master>(), auth_, offload_, config_.masterUid);
          })
          .then([this](Greeted greeted) {
            return enterNode(kj::mv(greeted), hello(), auth_, offload_);
          });
  return timer_.timeoutAfter(config_.attemptLimit, kj::mv(entering)).then([this](NodeEntry entry) {
    return serve(kj::mv(entry));
  });
}

NodeHello MasterLink::hello() {
  return {.name = config_.node,
          .instance = instance_,
          .highest = host_.highestGeneration(),
          .daemon = host_.newDaemon(),
          .report = [this](wire::NodeReport::Builder out) {
            entering_ = true;
            waiting_.clear();
            host_.report(out);
          }};
}

kj::Promise<void> MasterLink::serve(NodeEntry entry) {
  up(entry);
  auto every = std::max<std::uint64_t>(entry.heartbeatUs, 1000) * kj::MICROSECONDS;
  auto closed = KJ_ASSERT_NONNULL(link_)->whenClosed().then([]() -> kj::Promise<void> {
    return sentence("the connection was closed", kj::Exception::Type::DISCONNECTED);
  });
  return closed.exclusiveJoin(beat(entry.session, every));
}

void MasterLink::up(NodeEntry& entry) {
  session_ = entry.session;
  state_ = State::Up;
  entering_ = false;
  delay_ = config_.retryFirst;
  heard_ = timer_.now();
  log_.info(Line("master-up")
                .add("master", config_.master)
                .add("generation", std::uint64_t(entry.generation.number)));
  host_.sessionBegan(entry.generation);
  for (auto& call : std::exchange(waiting_, {})) send(kj::mv(call));
  host_.linkSettled();
}

kj::Promise<void> MasterLink::beat(wire::NodeSession::Client session, kj::Duration every) {
  if (timer_.now() - heard_ > every * config_.missedHeartbeats) {
    return sentence(
        "it has not answered " + std::to_string(config_.missedHeartbeats) + " heartbeats",
        kj::Exception::Type::DISCONNECTED);
  }
  auto beating = session.heartbeatRequest();
  host_.heartbeat(beating);
  auto answered = beating.send().then([this](auto&&) { heard_ = timer_.now(); });
  tasks_.add(answered.catch_([](kj::Exception&&) {}));  // the loss of the line is told elsewhere
  return timer_.afterDelay(every).then(
      [this, session, every]() mutable { return beat(session, every); });
}

std::string MasterLink::whyLost(const kj::Exception& exception) const {
  auto why = sentenceOf(exception);
  if (state_ != State::Up && why.starts_with("Peer disconnected"))
    return "it closed the connection before it said anything: is the port right (6830, not 6831)?";
  if (exception.getType() != kj::Exception::Type::OVERLOADED) return why;
  return "it has taken the connection and said nothing for " +
         std::to_string(config_.attemptLimit / kj::SECONDS) +
         " s: it stands still, or it is no tsmasterd: is the port right (6830, not 6831)?";
}

kj::Promise<void> MasterLink::lost(kj::Exception&& exception) {
  auto why = whyLost(exception);
  bool wasUp = state_ == State::Up;
  if (why != why_ || wasUp) {
    log_.warning(Line("master-down").add("master", config_.master).add("why", why));
  }
  why_ = std::move(why);
  state_ = State::Down;
  entering_ = false;
  waiting_.clear();
  answers_.drop();
  session_ = nullptr;
  link_ = nullptr;
  if (isNameTaken(exception)) delay_ = config_.retryCap;  // a person must act
  if (wasUp) host_.linkLost();
  host_.linkSettled();
  return timer_.afterDelay(nextDelay());
}

kj::Duration MasterLink::nextDelay() {
  auto delay = delay_;
  delay_ = std::min(delay_ * 2, config_.retryCap);
  // Nodes that lost their master together do not come back together.
  auto spread = std::hash<std::string>{}(config_.node) % 64;
  return delay + delay * unsigned(spread) / 256;
}

void MasterLink::tell(Call call) {
  if (state_ == State::Up) return send(kj::mv(call));
  if (entering_) waiting_.push_back(kj::mv(call));
}

void MasterLink::send(Call call) {
  answers_.drop();
  tasks_.add(kj::evalNow([&] { return call(session()); }));
}

wire::NodeSession::Client& MasterLink::session() {
  KJ_IF_MAYBE (s, session_) return *s;
  kj::throwFatalException(sentence(whyDown(), kj::Exception::Type::DISCONNECTED));
}

void MasterLink::taskFailed(kj::Exception&& exception) {
  // A call that the loss of the line ended; the next report says what it wanted to say.
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  log_.error(Line("master-call-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts::node
