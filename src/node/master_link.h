// The node's line to its master: connects, proves itself, reports, keeps it alive, connects again.
#pragma once

#include <kj/async-io.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "log/log.h"
#include "timeslice.capnp.h"
#include "wire/auth.h"
#include "wire/greet.h"
#include "wire/kept_answers.h"
#include "wire/link.h"

namespace ts::node {

struct MasterLinkConfig {
  std::string node;     // our name
  std::string master;   // "HOST:PORT"; "": none, and none will be looked for
  uid_t masterUid = 0;  // whose credential it must have, with auth "munge"
  kj::Duration retryFirst = 50 * kj::MILLISECONDS;
  kj::Duration retryCap = 5 * kj::SECONDS;
  kj::Duration attemptLimit = 10 * kj::SECONDS;
  unsigned missedHeartbeats = 5;  // then the line is dead, whatever TCP says
};

// What the line needs of the rest of the node. Called on the loop's thread.
class MasterLinkHost {
public:
  virtual ~MasterLinkHost() noexcept(false) {}
  virtual Generation highestGeneration() = 0;
  // The capability for the session that is about to begin; earlier ones are void from here on.
  virtual wire::NodeDaemon::Client newDaemon() = 0;
  // Afterwards everything that happens is told; what was not confirmed is to be told again, first.
  virtual void report(wire::NodeReport::Builder out) = 0;
  virtual void heartbeat(wire::NodeSession::HeartbeatParams::Builder out) = 0;
  virtual void sessionBegan(const Generation& generation) = 0;
  // An attempt has ended: the line is up, or why it is not is known.
  virtual void linkSettled() = 0;
  virtual void linkLost() = 0;
};

class MasterLink final : private kj::TaskSet::ErrorHandler {
public:
  using Call = std::function<kj::Promise<void>(wire::NodeSession::Client&)>;
  enum class State { Alone, Connecting, Up, Down };

  MasterLink(MasterLinkConfig config, kj::Network& network, kj::Timer& timer, Auth& auth,
             Offload offload, MasterLinkHost& host, Log& log);
  KJ_DISALLOW_COPY(MasterLink);

  void start();
  void stop();
  State state() const { return state_; }
  bool isUp() const { return state_ == State::Up; }
  // Neither up nor known to be down: the first attempt is on its way.
  bool isUnsettled() const { return state_ == State::Connecting; }
  // For a person: where it looked and what it met.
  std::string whyDown() const;

  // Tells in order. While a session begins the call waits for it; while there is none it is
  // dropped: the next report says it.
  void tell(Call call);
  // Of calls that were told.
  KeptAnswers& answers() { return answers_; }
  // Fails when the line breaks before the answer.
  wire::NodeSession::Client& session();

private:
  void taskFailed(kj::Exception&& exception) override;
  kj::Promise<void> run();
  kj::Promise<void> attempt();
  NodeHello hello();
  kj::Promise<void> serve(NodeEntry entry);
  kj::Promise<void> beat(wire::NodeSession::Client session, kj::Duration every);
  void up(NodeEntry& entry);
  std::string whyLost(const kj::Exception& exception) const;
  kj::Promise<void> lost(kj::Exception&& exception);
  kj::Duration nextDelay();
  void send(Call call);

  MasterLinkConfig config_;
  kj::Network& network_;
  kj::Timer& timer_;
  Auth& auth_;
  Offload offload_;
  MasterLinkHost& host_;
  Log& log_;
  std::uint64_t instance_;  // of this life
  State state_ = State::Alone;
  std::string why_ = "it has not answered yet";
  kj::Duration delay_;
  kj::Maybe<kj::Own<Link>> link_;
  kj::Maybe<wire::NodeSession::Client> session_;
  KeptAnswers answers_;
  bool entering_ = false;      // the report has been made, its session is not here yet
  std::vector<Call> waiting_;  // for it
  kj::TimePoint heard_;        // the last answered heartbeat
  kj::TaskSet tasks_;
  kj::Promise<void> running_ = kj::READY_NOW;
};

}  // namespace ts::node
