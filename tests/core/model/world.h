// A world for the core to order about: nodes, processes and a driver that may fail in every way. It
// holds the truth, tells it to a cluster, and checks every action against the promises of the
// design.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/cluster.h"

namespace ts::test {

// A promise was broken; the text says which and by what.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What happened how often, over all walks: events by name, and rows of the failure table.
using Counts = std::map<std::string, std::uint64_t>;

// One move of a walk: a number that picks what, and numbers that pick whom and how. Moves mean
// something in every state (or do nothing), so a walk can be shortened by leaving some out.
struct Move {
  unsigned what = 0, whom = 0, how = 0;
};

class World {
public:
  World(unsigned seed, Counts& counts);

  void make(const Move& move);  // may throw Broken
  void drain();                 // everything is mended and let run: no waiter may be left
  const std::vector<std::string>& story() const { return story_; }
  // All actions so far as text, when asked for before the first move.
  void record() { recording_ = true; }
  const std::string& actions() const { return actions_; }

private:
  enum class Stand { Out, Waiting, In };
  struct Person {  // a participant
    ParticipantId id;
    JobId job;
    NodeId node;
    ProcessId process;
    Devices devices;
    Stand stand = Stand::Out;
    RequestId request{};
    std::uint64_t ticket = 0;
    Epoch epoch;
    std::string name;
    bool unanswered = false;  // its process has not heard that it has joined
  };
  struct Thing {  // a member
    JobId job;
    NodeId node;
    MemberFact fact;
    bool alive = true;
    bool noSave = false, noRestore = false, noQuiesce = false;  // fails until mended
  };
  struct Job {
    GroupId group;
    JobOptions options;
    bool evicted = false;
    bool odd = false;        // a member of it changed on its own: it need not be whole
    std::set<NodeId> stuck;  // nor where something of it could not be let go, until that is done
    bool faulted = false;
    bool killed = false;
    bool wasGranted = false;
    bool gathered = false;            // its nodes were told so
    std::optional<Devices> stillOut;  // of its gang: will join later
    int people = 0, things = 0;
    Epoch epoch;  // of the last grant
  };
  enum class Link { Up, Suspect, Dead };
  struct Node {
    Link link = Link::Up;
    bool drained = false;
    Devices devices;
    std::set<JobId> lost;  // jobs on it when it was declared dead
  };
  struct Open {
    OperationId id;
    Action action;
    std::string verb;
    NodeId node;
    JobId job;
    MemberId member{};
    bool overdue = false;
  };
  struct Hold {
    JobId job{};
    Epoch epoch;
    bool recovered = false;  // given by an earlier master
  };
  struct Room {  // a booking at a node, in the name of a job
    OperationId prepare{};
    bool held = false;
    bool forgotten = false;  // its node's daemon may have restarted since
    std::vector<MemberId> outgoing, incoming;
  };

  // world.cpp: set-up, telling, obeying
  void setUp();
  void addGroup(GroupId id, const GroupConfig& config);
  JobId addJob(GroupId group);
  void addPerson(JobId job, const Devices& devices, ProcessId process);
  void declare(JobId job);
  bool joinLate(bool cutOff = false);  // somebody has
  void undoJoins(NodeId node);
  void addThing(JobId job, const Devices& devices, Residency residency);
  // One that goes on happens in the same step as the next.
  void send(const Event& event, const std::string& line, bool goesOn = false);
  void hear();
  void obey(const Action& action);
  template <typename A>
  void open(const A& a, const char* verb);

  // moves.cpp: what may happen
  void acquire(unsigned whom, bool tryOnly);
  void cancel(unsigned whom);
  void yield(unsigned whom, unsigned how);
  void answer(unsigned whom, unsigned how);
  void overdue(unsigned whom);
  void pass(unsigned how);
  void trouble(unsigned whom, unsigned how);
  void nodes(unsigned whom, unsigned how);
  void people(unsigned whom, unsigned how);
  void releaseLate(unsigned whom);
  void forgetCalls(NodeId id, unsigned how);
  void things(unsigned whom, unsigned how);
  void operators(unsigned whom, unsigned how);
  void restart(unsigned how);
  void finish(std::size_t index, Outcome::Code code, unsigned how);
  Outcome apply(const Open& order, Outcome::Code code, unsigned how);
  Outcome::Code fate(const Open& order, unsigned how) const;
  void countFailure(const Open& order, Outcome::Code code, const Outcome& o);
  void noteStuck(const Open& order, const Outcome& o);
  void answered(const Grant& a, bool ok);
  void touchDevices(JobId job, NodeId node, unsigned how);
  void die(MemberId id);
  void leave(ParticipantId id, bool died);
  void killOn(JobId job, NodeId node);
  void endIfEmpty(JobId job);
  void rejoin(NodeId node);
  void report(NodeId node);

  // The steps of drain().
  void mendAll();
  void settle();  // may throw Broken
  void buryTheDead();
  void clearFaults();
  bool yieldAll();
  bool passTime();
  void askFor(JobId job);
  void noWaiterIsLeft(const char* complaint) const;
  void everyJobWasGranted() const;
  std::map<JobId, std::pair<Epoch, Devices>> grantsAt(NodeId node) const;
  int troubles() const;

  // promises.cpp: what must hold
  void check(const Prepare&);
  void check(const DropBooking&);
  void check(const Quiesce&);
  void check(const Release&);
  void check(const Save&);
  void check(const Restore&);
  void check(const Grant&);
  void check(const EndSlice&);
  void check(const Discard&);
  void check(const Kill&);
  void check(const Refuse&);
  void check(const AskToYield&);
  void check(const Notice&);
  void notHolding(JobId job, const char* verb) const;
  void onlyOrder(NodeId node, JobId job, MemberId member, const char* verb) const;
  void checkStep() const;
  void checkWhole(JobId job) const;
  bool runs(const Thing& thing) const;
  bool onDevice(const Thing& thing) const;
  bool incomplete(JobId job) const;
  bool sends(JobId incoming, JobId job) const;
  bool stale(Device device) const;
  std::string why(JobId job) const;
  bool anybodyIn(const Hold& hold) const;
  bool claims(JobId job, Device device) const;
  bool switching(JobId job) const;
  bool anySaved(JobId job) const;
  bool inRoom(MemberId id) const;

  bool up(NodeId id) const { return nodes_.at(id).link == Link::Up; }
  std::string text(JobId job) const;
  std::string text(NodeId node) const;
  std::string text(MemberId member) const;
  template <typename Map, typename Pred>
  auto pick(Map& map, unsigned whom, Pred pred) -> typename Map::mapped_type*;

  Counts& counts_;
  std::mt19937 random_;
  ClusterConfig config_;
  std::map<GroupId, GroupConfig> groups_;
  std::unique_ptr<Cluster> cluster_;
  Instant now_{};
  std::map<NodeId, Node> nodes_;
  std::map<JobId, Job> jobs_;
  std::map<ParticipantId, Person> people_;
  std::map<MemberId, Thing> things_;
  std::vector<Open> open_;
  std::vector<Event> batch_;                  // told and not yet heard
  std::map<RequestId, ParticipantId> asked_;  // requests without an answer
  std::set<RequestId> promised_;              // in a grant order already
  std::set<RequestId> forgotten_;             // by its node, and perhaps not by the master
  std::map<Device, Hold> holds_;
  std::map<std::pair<NodeId, JobId>, Room> rooms_;
  std::set<std::pair<NodeId, JobId>> refused_;  // bookings, in the step that is told
  std::set<GroupId> paused_;
  std::set<std::pair<JobId, Epoch>> found_;  // slices that nodes have told a new master of
  Epoch last_;
  std::uint64_t requests_ = 0, participants_ = 0, jobCount_ = 0;
  unsigned generation_ = 1;
  bool duel_ = false;  // every job wants everything: nothing but switches over all nodes
  bool restarted_ = false, draining_ = false, recording_ = false;
  std::vector<std::string> story_;
  std::string actions_;
};

}  // namespace ts::test
