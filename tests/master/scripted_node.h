// A node daemon inside a test: does what it is ordered, remembers what it was told, answers as
// scripted.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/loop.h"
#include "timeslice.capnp.h"
#include "wire/greet.h"
#include "wire/link.h"
#include "wire/translate.h"

namespace ts::test {

class ScriptedNode {
public:
  ScriptedNode(Loop& loop, std::string name, unsigned devices = 1)
      : loop_(loop), name_(std::move(name)), devices_(devices) {}

  // Greets and enters at `address`; what it knows of jobs is its report.
  void connect(const std::string& address);
  void disconnect();  // its state stays, as with a node daemon that lives on
  // The sentence with which the master refused it; "" when it was let in.
  std::string refusalOf(const std::string& address);

  // What local programs ask for. `participant` and `request` are this node's own numbers.
  Outcome join(const std::string& group, const std::string& job, std::uint64_t participant,
               std::vector<std::uint32_t> devices = {0}, std::uint32_t uid = 1000);
  void acquire(std::uint64_t participant, std::uint64_t request, bool tryOnly = false);
  void cancel(std::uint64_t request);
  void yield(std::uint64_t participant);
  void forgetYield(std::uint64_t participant) { participants_.at(participant).entered = false; }
  void yieldWith(std::uint64_t participant, Epoch epoch);
  void yieldUnanswered(std::uint64_t participant);  // heard when this returns
  void leave(std::uint64_t participant, bool died = false);
  void endJob(const std::string& group, const std::string& job);
  void seeMember(std::uint64_t member, const std::string& group, const std::string& job,
                 std::uint64_t bytes);

  bool entered(std::uint64_t participant) const { return participants_.at(participant).entered; }
  Epoch epoch(std::uint64_t participant) const { return participants_.at(participant).epoch; }
  Residency residency(std::uint64_t member) const { return members_.at(member).fact.residency; }

  // "VERB JOB", in the order of arrival.
  std::vector<std::string> orders;
  std::vector<OperationId> operations;
  struct Refused {
    std::uint64_t request;
    Cause cause;
    std::string holder;
    std::string detail;
  };
  std::vector<Refused> refusals;
  std::vector<std::string> asked;  // to yield
  unsigned heartbeats = 0;
  Generation generation;  // that it follows

  // The next order with this verb ends so instead of being obeyed.
  std::map<std::string, std::deque<Outcome>> script;
  // The next order with this verb is answered with an exception.
  std::map<std::string, std::deque<kj::Exception::Type>> thrown;
  // Orders with this verb are done and not answered until it is cleared.
  std::string held;
  void answerHeld();
  // All nodes of a job, as the master said; by the job's name, in the order of the alphabet.
  std::map<std::string, std::vector<std::string>> spans;
  std::map<std::string, wire::Gathering> gathered;
  std::map<std::string, std::uint32_t> gangs;  // of its jobs, by their names
  // As if the only join of the job here had never been answered.
  void withdraw(const std::string& group, const std::string& job, std::uint64_t participant);
  unsigned spansTold = 0;
  std::map<std::string, std::uint32_t> slurmJobs;  // whose steps its jobs are, by their names
  bool silent = false;                             // answers no heartbeat
  std::uint64_t instance = 0;                      // the life of its daemon

  // For what the methods above do not cover.
  wire::NodeSession::Client& session();
  std::size_t ordered(const std::string& what) const;

private:
  friend class ScriptedDaemon;
  std::vector<std::uint64_t> withdrawn_;
  struct Job {
    std::uint32_t uid = 0;
    bool granted = false;
    Epoch epoch;
  };
  struct Participant {
    JobName job;
    std::vector<std::uint32_t> devices;
    bool entered = false;
    Epoch epoch;
    bool waiting = false;
    std::uint64_t request = 0;
    std::uint32_t ticketGeneration = 0;
    std::uint64_t ticket = 0;
  };
  struct Member {
    JobName job;
    MemberFact fact;
  };

  kj::Promise<NodeEntry> entering(const std::string& address);
  void report(wire::NodeReport::Builder out);
  void reportJob(const JobName& name, const Job& job, wire::JobReport::Builder out);
  Outcome obey(const std::string& verb, const JobName& job, OperationId operation);
  void granted(const JobName& job, Epoch epoch, const std::vector<std::uint64_t>& requests);
  void setResidency(const JobName& job, Residency residency);
  Outcome facts(const JobName& job) const;
  kj::Promise<void> whenAnswerable(const std::string& verb);

  Loop& loop_;
  std::string name_;
  unsigned devices_;
  std::unique_ptr<Auth> auth_ = newNoAuth();
  std::map<JobName, Job> jobs_;
  std::map<std::uint64_t, Participant> participants_;
  std::map<std::uint64_t, Member> members_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> heldAnswers_;
  kj::Maybe<wire::NodeSession::Client> session_;
  kj::Maybe<kj::Own<Link>> link_;
};

}  // namespace ts::test
