// Participants and their slices: joins, acquires, yields and what becomes of them when a
// connection, a process or the master goes away. Every request is answered once.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "log/log.h"
#include "node/local_server.h"
#include "node/master_link.h"
#include "node/meters.h"
#include "node/registry.h"
#include "node/roll.h"
#include "node/watch.h"

namespace ts::node {

struct JoinRequest {
  JobSpec spec;
  std::vector<std::uint32_t> devices;
  bool atGate = false;                                // for a task that has not started
  kj::TimePoint until = kj::origin<kj::TimePoint>();  // it waits for a master that is away
};

// A slice, as the master grants it.
struct GrantOrder {
  JobName job;
  Epoch epoch;
  std::vector<std::uint32_t> devices;
  std::vector<RequestId> requests;
  std::uint64_t waitedUs = 0;
  bool restored = false;
  std::uint64_t bytes = 0;
};

struct RefuseOrder {
  RequestId request{};
  Outcome why;
  std::string holder;
};

class Participants final : private kj::TaskSet::ErrorHandler {
public:
  struct Parts {
    Registry& registry;
    MasterLink& link;
    Roll& roll;
    Watch& watch;
    kj::Timer& timer;
    Log& log;
    Meters& meters;
    std::function<Connection*(ConnectionId)> find;
    std::function<void(const JobName&)> settle;      // a participant went: is the job over?
    std::function<void(const GrantOrder&)> counted;  // a grant has arrived
    std::function<void(const JobName&)> ended;       // and its slice is over
    // How long a turn waits for a caller whose connection broke, before it is given back.
    kj::Duration reconnectGrace = 5 * kj::SECONDS;
  };
  explicit Participants(Parts parts);

  // From local programs. Each `request` is answered on the connection, now or later.
  void join(Connection& from, std::uint64_t request, JoinRequest what);
  void acquire(Connection& from, std::uint64_t request, const tsl_acquire& what);
  void cancel(Connection& from, std::uint64_t target);
  void yield(Connection& from, std::uint64_t request, const Epoch& epoch);
  void leave(Connection& from, std::uint64_t request);
  void closed(Connection& connection);
  const Participant* of(const Connection& connection);

  void processEnded(const Identity& identity);
  // After a restart: whose join the master never answered has not joined.
  void dropUnjoined();
  // Programs can connect from here on. Who waited in an earlier life of the daemon may come back
  // for a while.
  void opened();

  // From the master.
  void granted(const GrantOrder& order);
  void refused(const RefuseOrder& order);
  void sliceEnded(const JobName& job, const Epoch& epoch);
  void askToYield(const JobName& job, const Epoch& epoch);

  // A report was made: everybody who waits is in it; what it does not say is told after it.
  void reported();
  void linkSettled();
  void linkLost();

private:
  // Where a participant can be reached, and what it is owed there.
  struct Seat {
    std::optional<ConnectionId> connection;
    std::uint64_t joining = 0;  // the request of a join that is with the master
    std::uint64_t waiting = 0;  // the request of an acquire
    bool told = false;          // the master knows of the acquire
    bool leaving = false;       // the master has been told that it left
    bool asked = false;         // to yield
    Epoch ended;                // the last slice that ended without its yield
    std::optional<ConnectionId> grantedOn;
    std::optional<tsl_reply> undelivered;  // a grant for a caller that is away
    kj::Maybe<kj::Promise<void>> timer;    // of its deadline, or of the grace
  };
  struct Pending {
    ConnectionId connection;
    std::uint64_t request;
    JoinRequest what;
  };

  void taskFailed(kj::Exception&& exception) override;

  void joinAgain(Connection& from, std::uint64_t request, const JoinRequest& what, Participant& p);
  void joinAnew(Connection& from, std::uint64_t request, const JoinRequest& what);
  static bool isForeignStep(const Connection& from, const JobSpec& spec);
  Participant* atGateBefore(const Process& process, const JobName& job);
  void takeOver(Connection& from, std::uint64_t request, Participant& p);
  void leftGate(Participant& p);
  bool mustWait(const JoinRequest& what) const;
  void waitForMaster(Connection& from, std::uint64_t request, const JoinRequest& what);
  void askToJoin(Participant& p, const JoinRequest& what);
  void joinLost(ParticipantId id, const JoinRequest& what, const std::string& why);
  void withdraw(ParticipantId id);
  void joinAnswered(ParticipantId id, const Outcome& outcome);
  void joinFailed(ParticipantId id, tsl_status status, const std::string& why);

  Participant* at(const Connection& from, std::uint64_t request);
  void acquireAgain(Connection& from, std::uint64_t request, const tsl_acquire& what,
                    Participant& p);
  void startWaiting(ParticipantId id, const tsl_acquire& what);
  void tellAcquire(ParticipantId id, RequestId request);
  void sendAcquire(ParticipantId id, RequestId request);
  void askPlace(ParticipantId id, RequestId request);
  void awaitReturn(const Participant& p);
  // `then` may end the timer that calls it.
  void startTimer(ParticipantId id, kj::Duration delay, std::function<void()> then);
  void startDeadline(ParticipantId id, RequestId request, std::int64_t ms);
  void endWait(Participant& p, bool withdraw);
  void giveUp(ParticipantId id, RequestId request, tsl_status status, const std::string& why);

  void letIn(Participant& p, const GrantOrder& order);
  void deliver(Participant& p, const tsl_reply& reply);
  void giveBack(Participant& p, const Epoch& epoch);
  std::string whyNotYielded(const Participant& p, const Epoch& epoch);
  void tellYield(ParticipantId id);
  void yieldReported(ParticipantId id, const Epoch& epoch);
  void yieldKnown(ParticipantId id, const Epoch& epoch);
  void depart(Participant& p, bool died);
  void tellLeft(ParticipantId id);
  void gone(ParticipantId id);
  void withdrawnReported(ParticipantId id);

  void sit(Participant& p, Connection& connection);
  void standUp(ParticipantId id);
  void answer(ParticipantId id, std::uint64_t request, tsl_status status, std::string_view detail);
  tsl_reply sliceReply(const Epoch& epoch) const;

  Parts parts_;
  Registry& registry_;
  std::map<ParticipantId, Seat> seats_;
  std::map<ConnectionId, ParticipantId> sitting_;
  std::map<RequestId, ParticipantId> waiting_;
  std::vector<Pending> pending_;  // joins until there is a master, or they have waited enough
  kj::TaskSet tasks_;
};

}  // namespace ts::node
