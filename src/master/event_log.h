// What the log and `tsctl events` say: one line per event and action, with names in place of ids.
#pragma once

#include <string_view>

#include "core/action.h"
#include "core/event.h"
#include "log/log.h"
#include "master/directory.h"
#include "master/timeline.h"

namespace ts {

// info: grant, yield, switch, join, leave, and what becomes of nodes. warning and error: what a
// person should see. debug: the rest, which costs nothing while debug is off.
class EventLog {
public:
  EventLog(Log& log, Directory& directory) : log_(log), directory_(directory) {}

  Log& log() { return log_; }

  void happened(const Event& event);  // before the core is told: what it is about is still known
  void ordered(const Action& action);
  void ended(std::string_view verb, NodeId node, JobId job, OperationId operation,
             const Outcome& outcome, Duration took);
  void timed(const Spans& spans);

private:
  void say(const ParticipantJoined& joined);
  void say(const ParticipantLeft& left);
  void say(const Yielded& yielded);
  void say(const NodeSuspected& suspected);
  void say(const NodeReported& reported);
  void say(const NodeDied& died);
  void say(const NodeDrained& drained);
  void say(const GroupPaused& paused);
  void say(const JobEvicted& evicted);
  void say(const Grant& grant);
  void say(const Refuse& refusal);
  void say(const Kill& kill);
  void say(const Notice& notice);
  template <class Rest>
  void say(const Rest& rest);

  Line line(std::string_view verb, JobId job);
  Line line(std::string_view verb, NodeId node);
  void addNode(Line& line, NodeId node);
  void addJob(Line& line, JobId job, std::string_view key);

  // What describe() calls things.
  class DirectoryNames final : public Names {
  public:
    explicit DirectoryNames(Directory& directory) : directory_(directory) {}
    std::string job(JobId id) const override;
    std::string node(NodeId id) const override;
    std::string group(GroupId id) const override;

  private:
    Directory& directory_;
  };

  Log& log_;
  Directory& directory_;
  DirectoryNames names_{directory_};
};

}  // namespace ts
