// A node's live session, as the shell uses it: the capability to order, and the heartbeats.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "timeslice.capnp.h"
#include "wire/kept_answers.h"

namespace ts {

struct Pulse {
  Duration interval;
  Duration suspectAfter;
};

class NodeLink final : private kj::TaskSet::ErrorHandler {
public:
  // `hangUp` ends the connection, later and once; `why` is for the log.
  NodeLink(wire::NodeDaemon::Client daemon, kj::Timer& timer, std::function<Pulse()> pulse,
           std::function<void(std::string why)> hangUp);

  wire::NodeDaemon::Client& daemon() { return daemon_; }
  void heard() { lastHeard_ = now(); }
  void hangUp(std::string why) { hangUp_(std::move(why)); }
  // Another session takes its place: from now on this one changes nothing, and answers that are
  // still under way are not heard.
  void retire(std::string why);
  void retire();  // the master itself ends: its connections do so without us
  bool retired() const { return tasks_ == nullptr; }
  // Nothing is sent before open(): the answer that lets the node in has to leave first.
  bool isOpen() const { return open_; }
  void open();
  void whenOpen(std::function<void()> send);

  // Owns a promise for as long as the session lives.
  void keep(kj::Promise<void> promise) { tasks_->add(kj::mv(promise)); }

  KeptAnswers& answers() { return answers_; }
  // They leave with the next order, or with the next heartbeat.
  OwedAnswers& owed() { return owed_; }

private:
  kj::Promise<void> beat();
  void judge();
  static Instant now();
  void taskFailed(kj::Exception&& exception) override;

  wire::NodeDaemon::Client daemon_;
  kj::Timer& timer_;
  std::function<Pulse()> pulse_;
  std::function<void(std::string why)> hangUp_;
  Instant lastHeard_;
  Instant lastBeat_;
  bool open_ = false;
  std::vector<std::function<void()>> backlog_;
  KeptAnswers answers_;
  OwedAnswers owed_;
  kj::Own<kj::TaskSet> tasks_;
};

}  // namespace ts
