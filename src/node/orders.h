// What the master orders: each order once, recorded before and after, obeyed in parallel.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/log.h"
#include "node/fence.h"
#include "node/master_link.h"
#include "node/mover.h"
#include "node/participants.h"
#include "node/preparation.h"
#include "reactor/pidfd.h"

namespace ts::node {

// How long a job that is to be killed may take to come to rest.
constexpr auto kClearingQuiesce = 10 * kj::SECONDS;

class Orders final : private kj::TaskSet::ErrorHandler {
public:
  struct Parts {
    Registry& registry;
    Fence& fence;
    Bookings& bookings;
    Mover& mover;
    Preparation& preparation;
    Participants& participants;
    MasterLink& link;
    Watch& watch;
    kj::Timer& timer;
    Log& log;
    Meters& meters;
    kj::Duration saveDeadline = 120 * kj::SECONDS;
    kj::Duration restoreDeadline = 120 * kj::SECONDS;
    kj::Duration callLimit = 30 * kj::SECONDS;  // for what moves nothing and still asks the driver
    kj::Duration delay = 0 * kj::SECONDS;       // bench only
    bool saveBeforeKill = true;
    std::function<void(MemberId)> tellMember = [](MemberId) {};      // the master, where it is now
    std::function<int(int pidfd, int number)> signal = signalPidfd;  // 0 or errno
  };
  explicit Orders(Parts parts) : parts_(std::move(parts)), tasks_(*this) {}

  // The master's end of a session that begins. Orders over an earlier one are void.
  wire::NodeDaemon::Client newDaemon();
  void sessionBegan(const Generation& generation);
  using Run = std::function<Soon<Outcome>()>;
  struct Order {
    OperationId operation{};
    JobName job;
    const char* verb = "";
    kj::Duration limit = 0 * kj::SECONDS;  // then it is overdue; 0: it cannot be
    bool moves = false;  // calls backends: not beside another such order of the same member
    MemberId member{};   // of a move; 0: all of the job
    // Obeyed also where it cannot be written down: it needs no more room, and the master takes its
    // end for granted.
    bool givesBack = false;
    std::optional<Epoch> grants, ends;  // the slice that it lets begin, or ends
  };
  Soon<Outcome> obey(Order order, Run run);

  Soon<Outcome> grant(const GrantOrder& order);
  Outcome endSlice(const JobName& job, const Epoch& epoch);
  Soon<Outcome> kill(JobName job, std::string why);

  const Parts& parts() const { return parts_; }
  bool isCurrent(std::uint64_t session) const { return session == session_; }
  kj::Promise<void> whenIdle() { return tasks_.onEmpty(); }
  // What runs past its deadline, for status.
  std::vector<std::string> overdue() const;

private:
  class Daemon;
  struct Running {
    Order order;
    std::uint64_t owed = 0;  // the session whose answer said: the end will be told
    Generation generation;
    kj::TimePoint since = kj::origin<kj::TimePoint>();
    bool overdue = false;
    kj::Maybe<kj::Promise<void>> watchdog;
    kj::Own<kj::PromiseFulfiller<Outcome>> late;  // answers before the end
    kj::Maybe<kj::ForkedPromise<Outcome>> done;
  };
  void taskFailed(kj::Exception&& exception) override;
  bool isBusy(const Order& order) const;
  kj::Maybe<kj::Promise<Outcome>> grantBefore(const Order& order);
  Soon<Outcome> start(Order order, Run run);
  kj::Promise<Outcome> goOn(std::uint64_t serial, kj::Promise<Outcome> work);
  Outcome ended(std::uint64_t serial, Outcome outcome);
  void record(const Order& order, const Outcome& outcome);
  kj::Promise<Outcome> watch(std::uint64_t serial);
  void runsLate(std::uint64_t serial);
  Running* find(const Order& order);
  void tellMembers(const JobName& job);
  void tellFinished(OperationId operation, const Outcome& outcome);
  Outcome busy(const Order& order) const;
  std::vector<Member*> inCall(const Order& order) const;
  std::string processesIn(const Order& order) const;
  Outcome deviceTaken(const GrantOrder& order) const;
  bool isOver(const GrantOrder& order) const;
  kj::Promise<void> clearBeforeKill(JobName job);
  kj::Promise<void> atMost(kj::Duration limit, Soon<Outcome> work);
  Outcome signalAll(const JobName& job, const std::string& why);
  int signal(const Identity& target);

  Parts parts_;
  std::uint64_t session_ = 0;
  std::uint64_t serial_ = 0;
  std::map<std::uint64_t, Running> running_;  // an id may come again in another generation
  kj::TaskSet tasks_;
};

}  // namespace ts::node
