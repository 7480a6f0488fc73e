// Jobs that take turns on the devices they claim: whose turn it is, what must move, in what order.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "action.h"
#include "cluster.h"
#include "event.h"
#include "job.h"
#include "timers.h"

namespace ts {

struct Node;
struct Roster;

// Where a step's actions go, and what time it is in it.
struct Step {
  Instant now;
  Actions& out;
};

// Pure: no clock, no I/O, no threads, no globals. The same events at the same times always yield
// the same actions: daemon, simulator and tests share it.
//
// "A switch is not remembered, it is derived": every handler only writes down the facts it was
// told; derive() then reads residencies, queue and grants, and orders what is missing. Going on,
// rolling back, cancelling and recovering are the same code.
class Group {
public:
  Group(GroupId id, GroupConfig config, Roster& roster);

  void configure(const GroupConfig& config);

  // One fact about this group, its jobs, or a node that they are on.
  void take(Instant now, const Event& event, Actions& out);
  void timerFired(Instant now, const Timer& timer, Actions& out);
  void orderFinished(Instant now, const Order& order, OperationId id, const Outcome& outcome,
                     Actions& out);
  void orderOverdue(Instant now, const Order& order, const std::string& detail, Actions& out);
  // Something outside the group may free a waiter: a device of it, the grace of a recovery.
  void reconsider() { changed_ = true; }
  // What follows from all that was told since the last call.
  void derive(Instant now, Actions& out);
  // A node that the job names has reported, or a verdict about it was given.
  void nodeAnswered(Job& job);

  GroupId id() const { return id_; }
  GroupView view() const;
  JobView view(const Job& job) const;
  void addJobs(std::vector<JobView>& all) const;

private:
  struct ById {
    bool operator()(const Job* a, const Job* b) const { return a->id < b->id; }
  };
  struct ByDevice {
    bool operator()(const DeviceState* a, const DeviceState* b) const { return a->id < b->id; }
  };
  using Jobs = std::set<Job*, ById>;
  // Why a waiter cannot be granted now, and what that means for those behind it.
  struct Obstacle {
    enum class Kind {
      None,
      Wait,      // its turn will come: it holds back whoever conflicts with it
      HoldBack,  // a passing cause: it keeps its place and holds nobody back
      Refuse,    // it cannot be granted: its callers are told
    };
    Kind kind = Kind::None;
    Cause cause = Cause::None;
    JobId holder{};
    std::string detail = {};
  };
  enum class Purpose { Turn, Rescue, Parking };

  // What a switch still has to move, by node; the members in order.
  struct Load {
    using Part = std::map<NodeId, std::vector<MemberId>>;
    Part outgoing, incoming;
    bool empty() const { return outgoing.empty() && incoming.empty(); }
    static std::vector<MemberId> at(const Part& part, NodeId node) {
      auto it = part.find(node);
      return it == part.end() ? std::vector<MemberId>{} : it->second;
    }
  };

  // membership.cpp: who is here, where their state lies, what they claim
  void on(Step&, const JobDeclared&);
  void on(Step&, const JobEnded&);
  void on(Step&, const ParticipantJoined&);
  void on(Step&, const ParticipantLeft&);
  void on(Step&, const MemberSeen&);
  void on(Step&, const MemberDied&);
  void on(Step&, const MemberCleared&);
  void name(Job&, NodeId);
  void remove(Step&, Participant&, bool died, Cause);
  void gatherWhenAllAreHere(Step&, Job&);
  // `why`: what the driver said, if this is how a call ended.
  static void inherit(Member& member);
  void learn(Step&, Job&, NodeId, const MemberFact&, const std::string& why = {});
  void tellOutside(Step&, Job&, const Member&);
  void discard(Step&, Job&, const Member&);
  void removeMember(Job&, MemberId);
  void index(Job&, Member&);
  void unindex(Job&, Member&);
  void reclaim(Step&, Job&, bool widen);
  void setClaim(Job&, Devices);
  void touch(Job&);
  bool settled(const Job&) const;

  // waiting.cpp: from acquire to grant
  void on(Step&, const AcquireRequested&);
  void on(Step&, const AcquireCancelled&);
  void askedAgain(Step&, Participant&, const AcquireRequested&);
  void wait(Step&, Participant&);
  void admitLate(Step&);
  void stopWaiting(Participant&);
  void leaveQueue(Job&);
  void enqueueWhenComplete(Step&, Job&);
  void enqueue(Job&, Instant now);
  void dequeue(Job&);
  void listWaiter(Job&);
  void unlistWaiter(Job&);
  void pin(Job&, bool on);
  bool freeNow(Job&, Instant now) const;

  // slice.cpp: from grant to yield
  void on(Step&, const Yielded&);
  void on(Step&, const SliceReported&);
  void on(Step&, const GrantReported&);
  void grant(Step&, Job&);
  void giveGrant(Step&, Job&, NodeId, std::vector<RequestId>, Duration waited, const Switch&);
  void grantAgain(Step&, Job&);
  void grantRest(Step&);
  void giveGrantAgain(Step&, Job&, NodeId);
  void refuseUnanswered(Step&, Job&);
  bool mayEnter(const Participant&, Instant now) const;
  bool closed(const Job&, Instant now) const;
  void enter(Step&, Participant&);
  void leaveSlice(Step&, Participant&);
  void endIfOver(Step&, Job&);
  void endSlice(Step&, Job&);
  void armGang(Job&);
  void standsStill(Step&, Job&);
  void askHolders(Step&);
  void askToYield(Step&, Job&);
  static bool outranked(const std::vector<DeviceState*>&, Epoch);
  bool findSlice(Step&, Job&, NodeId, Epoch, const std::vector<DeviceState*>&);
  void joinSlice(Participant&);
  void addToSlice(Job&, const Devices&);
  void joinReported(Participant&);

  // plan.cpp: which switches are due
  void planRescues(Step&);
  void planRescue(Step&, Job&);
  static bool loses(const Job&, const Job& against);
  void planTurns(Step&);
  bool planTurn(Step&, Job&);
  std::vector<Job*> fronts() const;
  bool frontEverywhere(const Job&) const;
  std::vector<Job*> others(const Job&, const std::vector<DeviceState*>&) const;
  static std::vector<DeviceState*> homeOf(const Job&);
  Obstacle obstacle(const Job&, const std::vector<Job*>& outs, Instant now) const;
  Obstacle ownObstacle(const Job&, Instant now) const;
  static Obstacle lingering(const Job&);
  Obstacle outObstacle(const Job& out, const Job& incoming, const std::vector<DeviceState*>& wanted,
                       Instant now) const;
  void holdBack(Step&, Job&, const Obstacle&);
  void readmit(Job&);
  void readmitAll();
  void refuseAll(Step&, Job&, const Obstacle&);

  // switch.cpp: the next orders of one switch
  static bool touches(const Member&, const std::vector<DeviceState*>&);
  static Load loadOf(const Job& incoming, const std::vector<Job*>& outs,
                     const std::vector<DeviceState*>& wanted);
  bool advance(Step&, Job& incoming, const std::vector<Job*>& outs, Purpose);
  bool arrived(Step&, Job& incoming, Purpose);
  bool prepareAll(Step&, Job& incoming, const std::vector<Job*>& outs, const Load&);
  bool quiesce(Step&, Job&);
  void saveOff(Step&, Job& out, Job& incoming, const std::vector<DeviceState*>& wanted);
  void restoreReady(Step&, Job&);
  void commit(Step&, Job&, Purpose);
  void dropBookings(Step&, Job&);
  void dropCommitted(Step&, Job&);
  void dropBooking(Step&, Job&, NodeId);
  void finishUngranted(Step&, Job&);
  void finishSwitch(Step&, Job&);
  void endMove(Step&, Job&);

  // settle.cpp: jobs that no switch needs
  void settleRest(Step&);
  void settle(Step&, Job&);
  void giveUpMove(Step&, Job&);
  void release(Step&, Job&);
  void settleHalf(Step&, Job&);
  void setRescue(Job&, bool on);
  void undo(Job&);
  void reserveHome(Job&);
  static void unreserve(Job&);
  void noteIdle(DeviceState&);
  void freed(DeviceState&);
  void madeSafe(DeviceState&);
  void bringBack(Instant now);
  bool mayPark(const Job&, Instant now) const;
  static bool mayNotRun(const Job&);
  void planParking(Step&);

  // failures.cpp: how orders end
  void prepareFinished(Step&, Job&, const Order&, OperationId, const Outcome&);
  void quiesceFinished(Step&, Job&, const Order&, const Outcome&);
  void releaseFinished(Step&, Job&, const Order&, const Outcome&);
  void saveFinished(Step&, Job&, const Order&, const Outcome&);
  void restoreFinished(Step&, Job&, const Order&, const Outcome&);
  void grantFinished(Step&, Job&, const Order&, const Outcome&);
  static void unlocked(OnNode&);
  bool triesAgain(Step&, Job&, OnNode&, const Outcome&);
  static bool isFailure(const Outcome&);
  static bool isPassing(const Outcome&);
  void refuseGrant(Step&, Job&, const std::vector<RequestId>&, const Outcome&);
  void killFinished(Step&, Job&, const Order&, const Outcome&);
  bool moveEnded(Step&, Job&, const Order&, const Outcome&, Residency otherwise);
  void set(Job&, Member&, Residency, bool dead = false);
  void learnAll(Step&, Job&, const Order&, const Outcome&, std::optional<Residency> otherwise);
  static Cause causeOf(const Outcome&);
  static void remember(Job&, const Outcome&);
  void moveFailed(Step&, Job&, FaultKind, const Outcome&);
  Instant backOff(Step&, Job&, std::uint32_t attempt, bool itself);
  void setFault(Step&, Job&, FaultKind, Cause, std::string detail);
  void endByPolicy(Step&, Job&, Cause);
  void kill(Step&, Job&, Cause);
  void killOn(Step&, Job&, NodeId, Cause);
  void breakJob(Step&, Job&, const std::string& lost);
  void watchBroken(Step&);
  bool inOthersWay(const Job&) const;
  void retryDue(Step&, Job&);

  // outside.cpp: nodes and operators
  void on(Step&, const NodeJoined&);
  void on(Step&, const NodeReported&);
  void on(Step&, const NodeSuspected&);
  void on(Step&, const NodeDied&);
  void on(Step&, const NodeDrained&);
  void on(Step&, const GroupPaused&);
  void on(Step&, const JobEvicted&);
  void on(Step&, const FaultCleared&);
  void on(Step&, const TimePassed&) {}
  void on(Step&, const OrderFinished&) {}
  void on(Step&, const OrderOverdue&) {}
  void dropUnreported(Step&, Job&, NodeId);
  void dropStand(Step&, Participant&);
  void dropForgotten(Step&, Job&, NodeId);
  void endCondemned(Step&, Job&, NodeId);
  void leaveNode(Step&, Job&, NodeId);

  // Numbers an order, remembers it until its outcome comes, and gives it.
  template <typename A>
  OperationId give(Step& s, OrderKind kind, A action, Order order = {}) {
    order.kind = kind;
    order.node = action.node;
    order.job = action.job;
    action.operation = remember(std::move(order));
    s.out.push_back(std::move(action));
    return std::get<A>(s.out.back()).operation;
  }
  OperationId remember(Order order);
  void refuse(Step&, Participant&, Cause, JobId holder = {}, std::string detail = {});
  void notice(Step&, Notice::Kind, const Job&, Cause = Cause::None, std::string detail = {});
  void addQueue(const Job&, JobView&) const;
  void arm(Job&, Timer::Kind, std::optional<Instant>& slot, Instant at);
  void disarm(Job&, Timer::Kind, std::optional<Instant>& slot);

  GroupId id_;
  GroupConfig config_;
  Roster& roster_;
  bool paused_ = false;
  Jobs jobs_;
  LockQueue queue_;                             // all that wait
  Jobs heldBack_;                               // of these, those that hold nobody back
  std::set<DeviceState*, ByDevice> contested_;  // devices that somebody waits for
  Jobs unsettled_;  // something of them is moving, stopped, booked or half
  Jobs rescues_;
  Jobs parking_;
  Jobs broken_;
  Jobs late_;                              // some wait beside their running slice
  Jobs regrants_;                          // some node is to be given its grant once more
  std::set<DeviceState*, ByDevice> idle_;  // devices nobody uses or wants since the last look
  std::uint32_t unreported_ = 0;           // sum over the jobs
  std::uint64_t derivation_ = 0;
  std::uint64_t switches_ = 0;
  bool repeat_ = false;   // a switch ended in the derivation: look again
  bool changed_ = false;  // something happened that a held back waiter may have waited for
};

}  // namespace ts
