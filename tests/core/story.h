// A story told to a cluster in words that a person can read, with a small world that obeys its
// orders.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/cluster.h"

namespace ts::test {

// Letters for jobs, n0, n1, ... for nodes.
class StoryNames : public Names {
public:
  std::string job(JobId id) const override;
  std::string node(NodeId id) const override;
  std::string group(GroupId id) const override;
};

// One command a line; one that ends in `&` happens in the same step as the next.
//
// clang-format off
//   cluster recovering generation=2
//   group 1 policy=priority hold-limit=500 ...       times in milliseconds
//   at 0 node n0 devices=2                           joins and reports; `joins`, `reports` for the parts
//   at 0 job A group=1 gang=2 priority=3 keep nodes=n0,n1
//   at 0 join A n0:0,1 process=7                     participant A1, then A2, ...
//   at 3 rejoin A1 n0:0,1                            in a report
//   at 0 member A n0:0 resident bytes=10             member 11, then 12, ...; B's are 21, 22, ...
//   at 5 acquire A1 [try] [ticket=N] | cancel A1 | yield A1 [epoch=1.2] | in-slice A1 epoch=1.2
//   at 5 ok save n0 A | refuse prepare n1 A cause=no-host-memory | fail save n0 A [lasting] [cause=...]
//   at 5 gone save n0 A | late quiesce n1 A | ok all
//   at 5 left A1 [died] | died 11 | cleared 11 | ended A | seen 11 faulted
//   at 5 suspect n0 | dead n0 | drain n0 | undrain n0 | pause 1 | resume 1 | evict A [kill] | clear A
//   at 5 pass                                        time only
// clang-format on
class Story {
public:
  // Executes one command and returns the actions that it caused, one a line.
  std::string run(const std::string& line);

private:
  struct Words {
    std::string verb;
    std::vector<std::string> plain;
    std::map<std::string, std::string> named;
    bool has(const std::string& word) const;
    bool isUnreleased() const;  // released=no
    long number(const std::string& key, long otherwise = 0) const;
  };
  struct Open {       // an order nobody has answered yet
    std::string key;  // `save n0 A`
    OperationId id;
    NodeId node;
    JobId job;
    MemberId member;
  };
  struct Person {
    ParticipantId id;
    JobId job;
    RequestId request;
  };
  struct Thing {
    JobId job;
    NodeId node;
    MemberFact fact;
  };

  static Words words(std::istringstream& in);
  void configure(const Words& w);
  void act(const Words& w);
  bool membership(const Words& w);
  bool turns(const Words& w);
  bool world(const Words& w);
  bool orders(const Words& w);
  void answer(const Words& w, bool all);
  Outcome outcome(const Words& w, const Open& open);
  void send(const Event& event);
  void note(const Action& action);
  std::string tell(const Action& action) const;
  std::string whoAsked(const std::string& text) const;

  Cluster& cluster();
  Person& person(const std::string& name);

  StoryNames names_;
  ClusterConfig config_;
  std::unique_ptr<Cluster> cluster_;
  Instant now_{};
  std::map<std::string, Person> people_;
  std::map<RequestId, std::string> asked_;
  std::map<MemberId, Thing> things_;
  std::map<JobId, int> joined_, members_;
  std::map<JobId, Epoch> epochs_;
  std::vector<Open> open_;
  std::vector<Event> batch_;  // of the lines that go on
  bool goesOn_ = false;
  std::uint64_t participants_ = 0, requests_ = 0;
  std::string text_;
};

}  // namespace ts::test
