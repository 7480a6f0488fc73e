// The master's metrics: what happened since it started. What is, is looked up when somebody asks.
#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "core/action.h"
#include "master/directory.h"
#include "master/timeline.h"
#include "metrics/metrics.h"

namespace ts {

class Meters {
public:
  Meters(Metrics& metrics, Directory& directory);

  // Another life of the master: groups are numbered anew.
  void begun() { groups_.clear(); }
  void ordered(const Action& action);  // before it is obeyed
  void ended(std::string_view verb, const Outcome& outcome, Duration took);
  void timed(const Spans& spans);
  // Of the group's slices that have ended since this master started; nothing before the first.
  std::optional<Duration> meanHold(GroupId id) const;

private:
  // Looked up once: nothing on the path of a grant makes a string.
  struct Group {
    Counter& grants;
    Histogram& waits;
    Histogram& holds;
    Histogram& switches;
    Counter& moved;
    std::vector<Histogram*> phases;  // as Spans has them
  };
  struct Verb {
    std::string_view name;
    Histogram& seconds;
    Counter& failed;
  };

  Group& group(GroupId id);
  std::vector<Histogram*> phasesOf(const std::string& group);
  Verb& verb(std::string_view name);
  void count(const Grant& grant);
  void count(const Refuse& refusal);
  void count(const Notice& notice);
  template <class Rest>
  void count(const Rest&) {}

  Metrics& metrics_;
  Directory& directory_;
  std::deque<Group> groups_;  // by id
  std::deque<Verb> verbs_;
};

}  // namespace ts
