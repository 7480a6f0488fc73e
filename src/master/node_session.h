// What a node tells, as events for the core.
#pragma once

#include "master/node_link.h"
#include "master/shell.h"
#include "timeslice.capnp.h"

namespace ts {

// Lives as long as the node holds it; its end makes the node suspect, unless a later session of the
// same node has taken its place.
class NodeSession final : public wire::NodeSession::Server {
public:
  NodeSession(Shell& shell, NodeRecord& node, wire::NodeDaemon::Client daemon, kj::Timer& timer,
              std::function<void(std::string why)> hangUp);
  ~NodeSession() noexcept(false);

  NodeLink& link() { return link_; }

protected:
  kj::Promise<void> join(JoinContext context) override;
  kj::Promise<void> left(LeftContext context) override;
  kj::Promise<void> jobEnded(JobEndedContext context) override;
  kj::Promise<void> memberSeen(MemberSeenContext context) override;
  kj::Promise<void> memberDied(MemberDiedContext context) override;
  kj::Promise<void> memberCleared(MemberClearedContext context) override;
  kj::Promise<void> acquire(AcquireContext context) override;
  kj::Promise<void> cancel(CancelContext context) override;
  kj::Promise<void> yield(YieldContext context) override;
  kj::Promise<void> heartbeat(HeartbeatContext context) override;
  kj::Promise<void> finished(FinishedContext context) override;
  kj::Promise<void> admit(AdmitContext context) override;
  kj::Promise<void> outlook(OutlookContext context) override;

private:
  void alive();  // throws when a later session has replaced it

  Shell& shell_;
  NodeRecord& node_;
  NodeLink link_;
};

}  // namespace ts
