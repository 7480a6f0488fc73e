#include "world.h"

#include <algorithm>
#include <utility>

#include "core/describe.h"
#include "story.h"

namespace ts::test {
namespace {

constexpr std::uint64_t kMaxJobs = 26;  // a letter each

std::string digits(std::uint64_t n) {
  return std::to_string(n);
}

std::string ms(Duration d) {
  return digits(std::uint64_t(d.count() / 1000));
}

}  // namespace

World::World(unsigned seed, Counts& counts) : counts_(counts), random_(seed), duel_(seed % 2 == 0) {
  config_.retryFirst = std::chrono::milliseconds(100);
  config_.retryCap = std::chrono::seconds(2);
  config_.recoveryGrace = std::chrono::seconds(1);
  config_.quiesceAttempts = 3;
  setUp();
}

void World::setUp() {
  cluster_ = std::make_unique<Cluster>(config_);
  GroupConfig c;
  c.gangWait = std::chrono::seconds(2);
  c.brokenGrace = std::chrono::seconds(3);
  c.ageing = std::chrono::seconds(1);
  c.holdLimit = random_() % 2 ? std::chrono::milliseconds(500) : Duration{0};
  c.policy = random_() % 2 ? Policy::Priority : Policy::Fifo;
  addGroup(GroupId(1), c);
  addGroup(GroupId(2), c);
  for (int i = 0; i < 3; ++i) {
    NodeId id{unsigned(i)};
    nodes_[id].devices = {{id, 0}, {id, 1}, {id, 2}};
    send(NodeJoined{id, nodes_[id].devices}, "joins " + text(id) + " devices=3");
    send(NodeReported{id}, "reports " + text(id));
  }
  for (int i = 0; i < 5; ++i) addJob(GroupId(1));
  for (int i = 0; i < 2; ++i) addJob(GroupId(2));
}

void World::addGroup(GroupId id, const GroupConfig& c) {
  groups_[id] = c;
  cluster_->configure(id, c);
  story_.push_back("group " + digits(std::uint64_t(id)) +
                   (c.policy == Policy::Priority ? " policy=priority" : "") +
                   " hold-limit=" + ms(c.holdLimit) + " ageing=" + ms(c.ageing) +
                   " gang-wait=" + ms(c.gangWait) + " broken-grace=" + ms(c.brokenGrace));
}

// Group 1 has devices 0 and 1 of every node, group 2 has device 2. Claims overlap in all ways.
JobId World::addJob(GroupId group) {
  if (jobCount_ == kMaxJobs) return JobId{};
  JobId id{unsigned(++jobCount_)};
  Job& job = jobs_[id];
  job.group = group;
  std::vector<Devices> parts;
  for (auto& [nodeId, node] : nodes_) {
    if (node.link == Link::Dead || (random_() % 8 < 3 && !duel_)) continue;
    Devices part;
    for (const Device& d : node.devices) {
      bool ours = (d.index == 2) == (group == GroupId(2));
      if (ours && (random_() % 3 || d.index == 2 || duel_)) part.push_back(d);
    }
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.empty()) {
    for (auto& [nodeId, node] : nodes_) {
      if (node.link == Link::Dead || !parts.empty()) continue;
      parts.push_back({{nodeId, group == GroupId(2) ? 2U : 0U}});
    }
  }
  if (random_() % 2) job.options.gang = std::uint32_t(parts.size());
  job.options.priority = int(random_() % 3);
  if (random_() % 4 == 0) job.options.onBroken = OnBroken::Keep;
  declare(id);
  bool stateless = random_() % 8 == 0 && !duel_;
  if (job.options.gang > 1 && random_() % 3 == 0) {
    job.stillOut = parts.back();
    parts.pop_back();
  }
  for (const Devices& part : parts) {
    // A process of group 2 may be one of group 1, too: only so can there be circles.
    ProcessId process{1000 + participants_ + 1};
    for (const auto& [personId, p] : people_) {
      bool other = jobs_.at(p.job).group != group && p.node == part[0].node;
      if (other && random_() % 3 == 0) process = p.process;
    }
    addPerson(id, part, process);
    // What joins beside others has nothing on the device yet.
    if (!stateless) addThing(id, part, Residency::Absent);
    // A child of it: what it touches outside a slice may find the others saved.
    if (!stateless && random_() % 3 == 0) addThing(id, part, Residency::Absent);
  }
  return id;
}

void World::addPerson(JobId job, const Devices& devices, ProcessId process) {
  Person p{ParticipantId(++participants_), job, devices[0].node, process, devices};
  p.name = text(job) + digits(std::uint64_t(++jobs_.at(job).people));
  people_[p.id] = p;
  std::string where = text(p.node) + ":";
  for (const Device& d : devices) where += (where.back() == ':' ? "" : ",") + digits(d.index);
  send(ParticipantJoined{p.id, job, p.node, process, devices},
       "join " + text(job) + " " + where + " process=" + digits(std::uint64_t(process)));
}

void World::declare(JobId id) {
  const Job& job = jobs_.at(id);
  send(JobDeclared{id, job.group, job.options},
       "job " + text(id) + " group=" + digits(std::uint64_t(job.group)) + " gang=" +
           digits(job.options.gang) + " priority=" + digits(std::uint64_t(job.options.priority)) +
           (job.options.onBroken == OnBroken::Keep ? " keep" : ""));
}

// The rest of a gang.
bool World::joinLate(bool cutOff) {
  for (auto& [id, job] : jobs_) {
    if (!job.stillOut || !up(job.stillOut->front().node)) continue;
    declare(id);
    auto last = ParticipantId{participants_ + 1};
    addPerson(id, *std::exchange(job.stillOut, std::nullopt), ProcessId{1000 + participants_ + 1});
    people_.at(last).unanswered = true;
    if (cutOff) rejoin(people_.at(last).node);
    return true;
  }
  return false;
}

// A node whose line is cut before the answer is there takes the join back: it is asked anew, later.
void World::undoJoins(NodeId node) {
  std::vector<Person> all;
  for (auto& [id, p] : people_) {
    if (p.node == node && p.unanswered && p.stand == Stand::Out) all.push_back(p);
  }
  for (const Person& p : all) {
    ++counts_["row a join is undone"];
    people_.erase(p.id);
    Job& job = jobs_.at(p.job);
    job.stillOut = p.devices;
    job.gathered = false;
    send(ParticipantLeft{p.id, false, true}, "left " + p.name + " undone");
  }
}

void World::addThing(JobId job, const Devices& devices, Residency residency) {
  Job& j = jobs_.at(job);
  if (j.things == 9) return;
  MemberId id{std::uint64_t(job) * 10 + std::uint64_t(++j.things)};
  Thing& t = things_[id];
  t = {job, devices[0].node, {id, residency, 10, 0, devices}};
  std::string where = text(t.node) + ":";
  for (const Device& d : devices) where += (where.back() == ':' ? "" : ",") + digits(d.index);
  send(MemberSeen{job, t.node, t.fact},
       "member " + text(job) + " " + where + " " + ts::text(residency) + " bytes=10");
}

void World::send(const Event& event, const std::string& line, bool goesOn) {
  story_.push_back("at " + ms(now_.time_since_epoch()) + " " + line + (goesOn ? " &" : ""));
  ++counts_["event " + line.substr(0, line.find(' '))];
  batch_.push_back(event);
  if (goesOn) return;
  Actions out;
  cluster_->step(now_, std::exchange(batch_, {}), out);
  for (const Action& a : out) {
    if (recording_) actions_ += describe(a) + "\n";
    std::visit([&](const auto& x) { check(x); }, a);
    obey(a);
  }
  if (recording_) actions_ += "--\n";
  refused_.clear();
  checkStep();
}

// Ends a step that would go on.
void World::hear() {
  if (!batch_.empty()) send(TimePassed{}, "pass");
}

template <typename A>
void World::open(const A& a, const char* verb) {
  Open o{a.operation, a, verb, a.node, a.job};
  if constexpr (requires { a.member; }) o.member = a.member;
  open_.push_back(std::move(o));
}

// What is true from the moment an order is on its way: orders to a node arrive in their order.
void World::obey(const Action& action) {
  if (const auto* a = std::get_if<Prepare>(&action)) {
    rooms_[{a->node, a->job}] = {a->operation, false, false, a->outgoing, a->incoming};
    open(*a, "prepare");
  } else if (const auto* a = std::get_if<DropBooking>(&action)) {
    rooms_.erase({a->node, a->job});
    open(*a, "drop-booking");
  } else if (const auto* a = std::get_if<Quiesce>(&action)) {
    open(*a, "quiesce");
  } else if (const auto* a = std::get_if<Release>(&action)) {
    open(*a, "release");
  } else if (const auto* a = std::get_if<Save>(&action)) {
    open(*a, "save");
  } else if (const auto* a = std::get_if<Restore>(&action)) {
    open(*a, "restore");
  } else if (const auto* a = std::get_if<Grant>(&action)) {
    for (const Device& d : a->devices) holds_[d] = {a->job, a->epoch};
    for (RequestId r : a->requests) promised_.insert(r);
    Job& job = jobs_.at(a->job);
    job.wasGranted = true;
    job.epoch = a->epoch;
    last_ = std::max(last_, a->epoch);
    auto room = rooms_.find({a->node, a->job});
    if (room != rooms_.end() && room->second.held) rooms_.erase(room);  // dropped with the grant
    open(*a, "grant");
  } else if (const auto* a = std::get_if<EndSlice>(&action)) {
    for (auto& [device, hold] : holds_) {
      bool its = hold.job == a->job && hold.epoch == a->epoch;
      // A slice of an earlier master that is void at one node is void.
      if (its && (device.node == a->node || hold.recovered)) hold = {};
    }
    open(*a, "end-slice");
  } else if (const auto* a = std::get_if<Discard>(&action)) {
    open(*a, "discard");
  } else if (const auto* a = std::get_if<Kill>(&action)) {
    if (!nodes_.at(a->node).lost.count(a->job)) jobs_.at(a->job).killed = true;
    open(*a, "kill");
  } else if (const auto* a = std::get_if<Refuse>(&action)) {
    auto it = asked_.find(a->request);
    if (it == asked_.end()) return;  // forgotten
    auto person = people_.find(it->second);
    if (person != people_.end() && person->second.request == a->request) {
      person->second.stand = Stand::Out;
    }
    promised_.erase(a->request);
    asked_.erase(it);
  }
}

std::string World::text(JobId job) const {
  return StoryNames{}.job(job);
}
std::string World::text(NodeId node) const {
  return StoryNames{}.node(node);
}
std::string World::text(MemberId member) const {
  return digits(std::uint64_t(member));
}

}  // namespace ts::test
