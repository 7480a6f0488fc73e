// The core among real nodes: feeds it what happens, obeys what it orders. One thread, no locks.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/cluster.h"
#include "master/alarm.h"
#include "master/directory.h"
#include "master/event_log.h"
#include "master/meters.h"
#include "master/order_book.h"
#include "master/timeline.h"
#include "wire/generation.h"

namespace ts {

class Shell {
public:
  // `config` is read again whenever it matters, so that SIGHUP can replace its contents.
  Shell(kj::Timer& timer, const MasterConfig& config, Directory& directory, EventLog& events,
        Meters& meters);

  // Forgets everything and rules as `generation`. `recovering`: nodes may hold jobs of an earlier
  // one.
  void begin(Generation generation, bool recovering);
  const Generation& generation() const { return generation_; }

  // Fails when an event could not be taken: what the core knows from then on is not to be trusted.
  kj::Promise<void> whenBroken() { return kj::mv(broken_.promise); }

  // From here on nothing is fed: connections end, nobody is suspect for it.
  void stop() { stopped_ = true; }

  // May be called from within an obeyed action: what happens then is fed after it.
  void feed(Event event);
  // A yield that the node reports. Heard together with whatever else comes in the same turn of the
  // loop: of N nodes that answer at the same time the core takes one look, not N.
  void yielded(NodeRecord& node, std::uint64_t participant, const Epoch& epoch);

  // Whoever looks sees what follows from all that was told.
  Directory& directory() {
    hear();
    return directory_;
  }
  OrderBook& orders() { return orders_; }
  EventLog& events() { return events_; }
  const Cluster& cluster() {
    hear();
    return cluster_;
  }
  const MasterConfig& config() const { return config_; }
  const Meters& meters() const { return meters_; }
  Instant now() const { return monotonicNow(); }

  // The group's id, or nothing if the configuration does not know the group.
  const GroupId* group(const std::string& name);
  bool knowsGroup(const std::string& name) const;  // it is here, or would be made on demand
  GroupId adoptGroup(const std::string& name);     // whether the configuration knows it or not
  const GroupSection& section(const std::string& group) const;
  void configureAgain();  // after SIGHUP: for what comes

  // `tell` is called when others may know more than we do: a node is lost, a participant silent.
  void whenAmiss(std::function<void()> tell) { amiss_ = std::move(tell); }
  // Why no step of a Slurm job may begin here, or nothing.
  void refuseSteps(std::string why) { whyNoSteps_ = std::move(why); }
  const std::string& whyNoSteps() const { return whyNoSteps_; }

  // Nodes that come and go.
  void returned(NodeRecord& node);
  void lost(NodeRecord& node);
  void died(NodeRecord& node);  // a verdict

  // The core's refusal of the join that was fed last, if it did refuse.
  std::optional<Notice> takeJoinRefusal() { return std::exchange(joinRefusal_, std::nullopt); }

  // What takes an event and a change of the directory together.
  void refuseUnknown(NodeRecord& node, std::uint64_t localRequest);
  void cancel(RequestRecord& request);
  void leave(ParticipantRecord& participant, bool died);
  void undoJoin(ParticipantRecord& participant);
  // What a node knows of the job: it is told what is true, if that is something else.
  void reported(JobRecord& job, NodeRecord& node, Whereabouts said);
  void cleared(MemberRecord& member);
  void endedOn(NodeRecord& node, JobRecord& job);

private:
  void feedSoon(Event event);
  void hear();
  void take(std::vector<Event> events);
  void stepAll(std::vector<Event> events);
  void step(std::span<const Event> events);
  void tellNodes();
  void tellNodes(JobRecord& job);
  Whereabouts whereaboutsOf(const JobRecord& job);
  void obey(Action& action);
  void obey(Refuse& refusal);
  void obey(AskToYield& ask);
  void obey(Notice& notice);
  void obey(Grant& grant);
  template <class AnOrder>
  void obey(AnOrder& order) {
    orders_.give(std::move(order));
  }
  void orderEnded(const NodeOrder& order, OperationId operation, Outcome outcome, Duration took);
  void answer(const Grant& grant);
  void endProcesses(NodeRecord& node, JobRecord& job);
  void forgetAllOn(NodeRecord& node);
  void wakeUp();

  const MasterConfig& config_;
  Directory& directory_;
  EventLog& events_;
  Meters& meters_;
  Timeline timeline_;
  OrderBook orders_;
  Cluster cluster_;
  Generation generation_;
  std::optional<Notice> joinRefusal_;
  std::vector<Event> soon_;  // heard at the end of this turn of the loop, or before any other
  kj::Promise<void> hearing_ = kj::READY_NOW;
  std::deque<Event> pending_;
  std::function<void()> amiss_ = [] {};
  std::string whyNoSteps_;
  bool stepping_ = false;
  bool stopped_ = false;
  kj::PromiseFulfillerPair<void> broken_ = kj::newPromiseAndFulfiller<void>();
  Actions out_;
  Alarm alarm_;
};

}  // namespace ts
