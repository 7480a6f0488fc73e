#include "master/event_log.h"

#include "core/describe.h"
#include "master/sentences.h"

namespace ts {
namespace {

std::int64_t milliseconds(Duration duration) {
  return duration / std::chrono::milliseconds(1);
}

std::string_view yesOrNo(bool value) {
  return value ? "yes" : "no";
}

// What ends by itself in the normal course of things is no warning: a process that has ended is
// still seen on its device for a moment, a waiter gave up before anything was moved for it.
bool passes(const Notice& notice) {
  bool clearing = notice.kind == Notice::Kind::WaiterHeldBack && notice.cause == Cause::NotReleased;
  bool gaveUp = notice.kind == Notice::Kind::SwitchRolledBack &&
                (notice.cause == Cause::None || notice.cause == Cause::Busy);
  return clearing || gaveUp;
}

Level levelOf(const Notice& notice) {
  if (passes(notice)) return Level::Info;
  switch (notice.kind) {
    case Notice::Kind::SwitchStarted:
    case Notice::Kind::SwitchFinished:
    case Notice::Kind::SliceEnded:
    case Notice::Kind::GangGathered:
      return Level::Info;
    case Notice::Kind::StaleDropped:
      return Level::Debug;
    case Notice::Kind::JobFaulted:
      return Level::Error;
    default:
      return Level::Warning;
  }
}

}  // namespace

void EventLog::happened(const Event& event) {
  std::visit([this](const auto& e) { say(e); }, event);
}

void EventLog::ordered(const Action& action) {
  std::visit([this](const auto& a) { say(a); }, action);
}

void EventLog::ended(std::string_view verb, NodeId node, JobId job, OperationId operation,
                     const Outcome& outcome, Duration took) {
  bool fine = outcome.ok() || outcome.code == Outcome::Code::Gone;
  Level level = fine ? Level::Debug : Level::Warning;
  if (!log_.enabled(level)) return;
  Line said = line(fine ? "finished" : "failed", job);
  addNode(said, node);
  said.add("order", verb).add("operation", std::uint64_t(operation));
  said.add("took_us", std::int64_t(took.count()));
  if (!fine) said.add("cause", text(outcome.cause)).add("detail", outcome.detail);
  fine ? log_.debug(said) : log_.warning(said);
}

void EventLog::timed(const Spans& spans) {
  Line said = line("switch-timed", spans.job);
  auto add = [&](const char* key, Duration d) { said.add(key, std::int64_t(d.count())); };
  add("total_us", spans.total());
  add("queue_us", spans.queue);
  add("prepare_us", spans.prepare);
  add("lock_us", spans.lock);
  add("save_us", spans.save);
  add("restore_us", spans.restore);
  add("unlock_us", spans.unlock);
  log_.info(said);
}

// Events. ----------------------------------------------------------------------------------------

void EventLog::say(const ParticipantJoined& joined) {
  Line said = line("join", joined.job);
  addNode(said, joined.node);
  std::string devices;
  for (const Device& d : joined.devices)
    devices += (devices.empty() ? "" : ",") + std::to_string(d.index);
  log_.info(said.add("devices", devices));
}

void EventLog::say(const ParticipantLeft& left) {
  auto* participant = directory_.find(left.participant);
  if (participant == nullptr) return;
  Line said = line("leave", participant->job->id);
  addNode(said, participant->node->id);
  log_.info(said.add("died", yesOrNo(left.died)));
}

void EventLog::say(const Yielded& yielded) {
  auto* participant = directory_.find(yielded.participant);
  if (participant == nullptr) return;
  Line said = line("yield", participant->job->id);
  addNode(said, participant->node->id);
  log_.info(said.add("epoch", text(yielded.epoch)));
}

void EventLog::say(const NodeSuspected& suspected) {
  log_.warning(line("suspect", suspected.node));
}

void EventLog::say(const NodeReported& reported) {
  const NodeRecord& node = directory_.node(reported.node);
  Line said = line("reported", reported.node);
  said.add("address", node.address).add("devices", std::uint64_t(node.devices.size()));
  log_.info(said.add("jobs", std::uint64_t(node.jobs.size())));
}

void EventLog::say(const NodeDied& died) {
  log_.error(line("dead", died.node));
}

void EventLog::say(const NodeDrained& drained) {
  log_.info(line(drained.on ? "drain" : "undrain", drained.node));
}

void EventLog::say(const GroupPaused& paused) {
  log_.info(Line(paused.on ? "pause" : "resume").add("group", directory_.name(paused.group)));
}

void EventLog::say(const JobEvicted& evicted) {
  log_.warning(line("evict", evicted.job).add("kill", yesOrNo(evicted.kill)));
}

// Actions. ---------------------------------------------------------------------------------------

void EventLog::say(const Grant& grant) {
  Line said = line("grant", grant.job);
  addNode(said, grant.node);
  said.add("epoch", text(grant.epoch)).add("waited_ms", milliseconds(grant.waited));
  log_.info(said.add("restored", yesOrNo(grant.restored)).add("bytes", grant.bytes));
}

void EventLog::say(const Refuse& refusal) {
  auto* request = directory_.find(refusal.request);
  if (request == nullptr) return;
  Line said = line("refuse", request->participant->job->id);
  addNode(said, request->node->id);
  said.add("cause", text(refusal.cause));
  bool other = refusal.holder != request->participant->job->id;
  if (refusal.holder != JobId{} && other) addJob(said, refusal.holder, "holder");
  if (refusal.need != 0) said.add("need", refusal.need).add("free", refusal.free);
  if (!refusal.detail.empty()) said.add("detail", withNames(directory_, refusal.detail));
  log_.info(said);
}

void EventLog::say(const Kill& kill) {
  Line said = line("kill", kill.job);
  addNode(said, kill.node);
  log_.warning(said.add("cause", text(kill.why)));
}

void EventLog::say(const Notice& notice) {
  Level level = levelOf(notice);
  if (!log_.enabled(level)) return;
  Line said(text(notice.kind));
  if (notice.job != JobId{}) addJob(said, notice.job, "job");
  if (notice.fault != FaultKind::None) said.add("fault", text(notice.fault));
  if (notice.kind == Notice::Kind::JoinRefused && notice.cause == Cause::DeviceOwned) {
    addNode(said, notice.node);
    said.add("owner", directory_.name(notice.group));
  }
  if (notice.cause != Cause::None) said.add("cause", text(notice.cause));
  if (!notice.detail.empty()) said.add("detail", withNames(directory_, notice.detail));
  switch (level) {
    case Level::Error:
      return log_.error(said);
    case Level::Warning:
      return log_.warning(said);
    case Level::Info:
      return log_.info(said);
    case Level::Debug:
      return log_.debug(said);
  }
}

template <class Rest>
void EventLog::say(const Rest& rest) {
  if (!log_.enabled(Level::Debug)) return;
  std::string described;  // logfmt already
  if constexpr (std::is_constructible_v<Event, const Rest&>)
    described = describe(Event(rest), names_);
  else
    described = describe(Action(rest), names_);
  log_.debug(Line(described));
}

std::string EventLog::DirectoryNames::job(JobId id) const {
  auto* record = directory_.find(id);
  return record == nullptr ? Names::job(id) : record->name.group + "/" + record->name.name;
}

std::string EventLog::DirectoryNames::node(NodeId id) const {
  return directory_.node(id).name;
}

std::string EventLog::DirectoryNames::group(GroupId id) const {
  return directory_.name(id);
}

// Names. -----------------------------------------------------------------------------------------

Line EventLog::line(std::string_view verb, JobId job) {
  Line said(verb);
  addJob(said, job, "job");
  return said;
}

Line EventLog::line(std::string_view verb, NodeId node) {
  Line said(verb);
  addNode(said, node);
  return said;
}

void EventLog::addNode(Line& line, NodeId node) {
  line.add("node", directory_.node(node).name);
}

void EventLog::addJob(Line& line, JobId job, std::string_view key) {
  auto* record = directory_.find(job);
  if (record == nullptr) return;
  if (key == "job") line.add("group", record->name.group);
  line.add(key, record->name.name);
  if (key == "job") line.add("uid", std::uint64_t(record->uid));
}

}  // namespace ts
