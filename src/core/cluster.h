// All groups together: routes events, owns who may use which device, sees waiting across groups.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "action.h"
#include "event.h"
#include "view.h"

namespace ts {

enum class Policy { Fifo, Priority };

struct GroupConfig {
  Policy policy = Policy::Fifo;
  Duration ageing = std::chrono::seconds(60);  // Priority: one step up per this much waiting
  Duration holdLimit{0};                       // 0: a holder is never asked to yield
  Duration gangWait = std::chrono::seconds(60);
  Duration brokenGrace = std::chrono::seconds(30);
  Duration quiesceDeadline = std::chrono::seconds(30);
};

struct ClusterConfig {
  std::uint32_t generation = 1;
  bool recovering = false;                            // wait for reports of all nodes named in them
  Duration recoveryGrace = std::chrono::seconds(10);  // for order alone
  Duration retryFirst = std::chrono::milliseconds(500);
  Duration retryCap = std::chrono::seconds(30);
  std::uint32_t quiesceAttempts = 5;  // then the job is faulted(quiesce)
};

// Pure: no clock, no I/O, no threads, no globals. The same events at the same times always yield
// the same actions: daemon, simulator and tests share it.
class Cluster {
public:
  explicit Cluster(ClusterConfig config);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  // A group exists from here on; again: its configuration changes for what comes.
  void configure(GroupId group, const GroupConfig& config);

  // What has happened, in its order, and then once what follows from all of it: among N nodes that
  // answer at the same time the cost is that of one look, not of N.
  void step(Instant now, std::span<const Event> events, Actions& out);
  void step(Instant now, const Event& event, Actions& out) { step(now, {&event, 1}, out); }

  // When TimePassed is due at the latest; nothing while no timer runs.
  std::optional<Instant> nextWake() const;

  std::optional<GroupView> view(GroupId group) const;
  std::optional<JobView> view(JobId job) const;
  std::vector<GroupView> groups() const;
  std::vector<JobView> jobs() const;
  // A gang's N were there at once; without a gang: always.
  bool gathered(JobId id) const;
  // One of the jobs that claim it, which are all of one group.
  std::optional<JobId> claimant(const Device& device) const;
  // The place of a waiting acquire, to be kept by its node: given back in AcquireRequested, it
  // outlives the master. Nothing when the request does not wait.
  std::optional<std::uint64_t> ticket(RequestId request) const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ts
