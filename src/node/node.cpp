#include "node/node.h"

#include <kj/debug.h>
#include <unistd.h>

#include <utility>

#include "node/facts.h"
#include "node/words.h"
#include "reactor/descriptors.h"

namespace ts::node {
namespace {

constexpr auto kWatchAgain = 1 * kj::SECONDS;

kj::Duration toKj(microseconds d) {
  return d.count() * kj::MICROSECONDS;
}

std::vector<NamedDevice> namedDevices(const std::vector<GpuInfo>& gpus) {
  std::vector<NamedDevice> out;
  for (const auto& g : gpus) {
    bool mig = g.migMode.value_or(false);
    out.push_back({g.index, g.uuid,
                   mig ? "device " + std::to_string(g.index) +
                             " is in MIG mode, which cannot be saved: turn MIG off"
                       : ""});
  }
  return out;
}

std::map<std::string, std::string> backendNames(const Backends& backends) {
  std::map<std::string, std::string> out{{"turns", ""}};
  for (const auto& [name, backend] : backends) out[name];
  return out;
}

SnapshotBackend& backendByHand(const NodeConfig& config, const Backends& backends) {
  auto it = backends.find(config.backend);
  if (it == backends.end()) it = backends.begin();
  KJ_REQUIRE(it != backends.end(), "a node needs a backend", config.backend.c_str());
  return *it->second;
}

}  // namespace

std::string hostName() {
  char name[256] = {};
  KJ_SYSCALL(::gethostname(name, sizeof(name) - 1));
  return name;
}

Node::Node(const NodeConfig& config, World world, Records& records)
    : config_(config),
      world_(std::move(world)),
      name_(config.name.empty() ? hostName() : config.name),
      meters_(metrics_),
      registry_(records),
      fence_(records),
      bookings_(config.hostBudget),
      watch_(world_.port, [this](const Identity& identity) { processEnded(identity); }),
      roll_(
          registry_, world_.inventory, world_.workers, world_.log,
          {.changed = [this](Member& m) { memberChanged(m); },
           .vanished = [this](Member& m) { readAgain(m.id); },
           .seen = [this](const Member& m, std::string_view because) { memberSeen(m, because); }}),
      link_(
          {.node = name_, .master = config.master, .masterUid = world_.masterUid}, world_.network,
          world_.port.timer(), world_.auth,
          [this](std::function<void()> call) {
            return world_.workers.call<bool>([call] { return call(), true; }).ignoreResult();
          },
          *this, world_.log),
      mover_(moverParts()),
      clearing_(clearingParts()),
      preparation_(preparationParts()),
      participants_(participantsParts()),
      orders_(ordersParts()),
      byPid_(byPidParts()),
      steps_(stepsParts()),
      reception_(receptionParts()),
      tasks_(*this) {
  meters_.scrape(registry_, [this] {
    return Meters::Now{.connections = connections(),
                       .masterUp = link_.isUp(),
                       .overdue = orders_.overdue().size(),
                       .booked = bookings_.hostBooked()};
  });
}

// --- parts --------------------------------------------------------------------------------------

Mover::Parts Node::moverParts() {
  return {.registry = registry_,
          .roll = roll_,
          .bookings = bookings_,
          .watch = watch_,
          .workers = world_.workers,
          .timer = world_.port.timer(),
          .log = world_.log,
          .backends = world_.backends,
          .freedDeadline = toKj(config_.freedDeadline)};
}

Clearing::Parts Node::clearingParts() {
  return {.registry = registry_,
          .mover = mover_,
          .timer = world_.port.timer(),
          .log = world_.log,
          .cleared = [this](MemberId id) { memberCleared(id); },
          .freedDeadline = toKj(config_.freedDeadline)};
}

Preparation::Parts Node::preparationParts() {
  return {.registry = registry_,
          .roll = roll_,
          .mover = mover_,
          .bookings = bookings_,
          .workers = world_.workers,
          .strayed = [this](MemberId id) { readAgain(id); },
          .root = ""};
}

Participants::Parts Node::participantsParts() {
  return {.registry = registry_,
          .link = link_,
          .roll = roll_,
          .watch = watch_,
          .timer = world_.port.timer(),
          .log = world_.log,
          .meters = meters_,
          .find = [this](ConnectionId id) { return find(id); },
          .settle = [this](const JobName& job) { settle(job); },
          .counted = [this](const GrantOrder& order) { steps_.granted(order); },
          .ended = [this](const JobName& job) { steps_.sliceEnded(job); },
          .reconnectGrace = world_.reconnectGrace};
}

Orders::Parts Node::ordersParts() {
  return {.registry = registry_,
          .fence = fence_,
          .bookings = bookings_,
          .mover = mover_,
          .preparation = preparation_,
          .participants = participants_,
          .link = link_,
          .watch = watch_,
          .timer = world_.port.timer(),
          .log = world_.log,
          .meters = meters_,
          .saveDeadline = toKj(config_.saveDeadline),
          .restoreDeadline = toKj(config_.restoreDeadline),
          .callLimit = world_.callLimit,
          .delay = toKj(config_.orderDelay),
          .saveBeforeKill = config_.saveBeforeKill,
          .tellMember = [this](MemberId id) { tellMember(id); },
          .signal = world_.signal};
}

ByPid::Parts Node::byPidParts() {
  return {.registry = registry_,
          .roll = roll_,
          .mover = mover_,
          .watch = watch_,
          .workers = world_.workers,
          .timer = world_.port.timer(),
          .log = world_.log,
          .backend = backendByHand(config_, world_.backends),
          .find = [this](ConnectionId id) { return find(id); },
          .freedDeadline = toKj(config_.freedDeadline)};
}

Steps::Parts Node::stepsParts() {
  return {.registry = registry_,
          .link = link_,
          .roll = roll_,
          .watch = watch_,
          .timer = world_.port.timer(),
          .log = world_.log,
          .node = name_,
          .devices = namedDevices(roll_.devices()),
          .find = [this](ConnectionId id) { return find(id); },
          .signal = world_.signal};
}

Reception::Parts Node::receptionParts() {
  return {.participants = participants_,
          .byPid = byPid_,
          .steps = steps_,
          .devices = namedDevices(roll_.devices()),
          .backends = backendNames(world_.backends),
          .defaultBackend = config_.backend,
          .timer = world_.port.timer(),
          .status = [this] { return status(); },
          .doctor = [this](ConnectionId c, std::uint64_t r) { doctor(c, r); }};
}

// --- life ---------------------------------------------------------------------------------------

kj::Promise<void> Node::start(kj::AutoCloseFd listener) {
  // The socket is there before we are ready: who connects meanwhile waits in its backlog.
  return adopt().then([this, listener = kj::mv(listener)]() mutable {
    VisitorLimits limits{.perUser = std::uint32_t(affordable(config_.connectionsPerUser)),
                         .greeting = config_.helloDeadline.count() * kj::MICROSECONDS};
    server_ = std::make_unique<LocalServer>(world_.port, kj::mv(listener), limits, reception_,
                                            world_.log);
    participants_.opened();
    link_.start();
    world_.log.info(Line("ready")
                        .add("node", name_)
                        .add("socket", config_.socket)
                        .add("devices", std::uint64_t(roll_.devices().size()))
                        .add("jobs", std::uint64_t(registry_.jobs().size())));
  });
}

// Found again under its number: the journal keeps no more of a process than who it is.
bool Node::recognize(Process& process) {
  if (!watch_.add(process.identity)) return false;
  if (auto now = readProcess(process.identity.pid)) process = *now;
  return true;
}

// What an earlier life left is looked at and reported; nothing is moved.
kj::Promise<void> Node::adopt() {
  participants_.dropUnjoined();
  byPid_.adopt();
  std::vector<Identity> ended;
  for (auto& [id, p] : registry_.participants()) {
    if (!p.departed && !recognize(p.process)) ended.push_back(p.process.identity);
  }
  kj::Vector<kj::Promise<void>> reads;
  for (auto& [id, m] : registry_.members()) {
    if (m.ended)
      tasks_.add(clearing_.clear(id));
    else if (recognize(m.process))
      reads.add(mover_.adopt(id));
    else
      ended.push_back(m.process.identity);
  }
  for (const auto& [name, backend] : world_.backends) reads.add(probe(name, *backend));
  return kj::joinPromises(reads.releaseAsArray())
      .then([this] { return roll_.look(); })
      .then([this, ended = std::move(ended)](const Scan& scan) {
        for (const auto& [device, memory] : scan.memory) free_[device] = memory.freeBytes;
        for (const auto& identity : ended) processEnded(identity);
        mover_.releasedLate(scan);  // the report says it
        steps_.adopt();
        std::vector<JobName> jobs;
        for (const auto& [name, job] : registry_.jobs()) jobs.push_back(name);
        for (const auto& name : jobs) settle(name);
      });
}

kj::Promise<void> Node::probe(std::string name, SnapshotBackend& backend) {
  return world_.workers.call<Probe>([&backend] { return backend.probe(); })
      .then([this, name](Probe probe) {
        if (probe.usable) return;
        reception_.setBackend(name, probe.detail);
        world_.log.warning(Line("no-backend").add("backend", name).add("why", probe.detail));
      });
}

kj::Promise<void> Node::stop() {
  if (server_) server_->stopListening();
  link_.stop();  // no more orders
  return orders_.whenIdle().then([this] { return byPid_.whenIdle(); });
}

void Node::reconfigure(const NodeConfig& config) {
  config_.hostBudget = config.hostBudget;
  bookings_.setBudget(config.hostBudget);
}

void Node::report(wire::NodeReport::Builder out) {
  std::vector<DeviceFact> devices;
  for (const auto& gpu : roll_.devices()) {
    auto it = free_.find(gpu.index);
    devices.push_back({gpu, it == free_.end() ? 0 : it->second});
  }
  toWire(name_, devices, registry_, out);
  participants_.reported();
  for (const auto& [id, m] : registry_.members()) {
    if (!m.ended) continue;
    link_.tell([id = id](wire::NodeSession::Client& session) {
      auto call = session.memberDiedRequest();
      call.setMember(std::uint64_t(id));
      return call.send().ignoreResult();
    });
  }
}

// The measure is for the next one: a driver that hangs holds up no heartbeat.
void Node::heartbeat(wire::NodeSession::HeartbeatParams::Builder out) {
  auto list = out.initFree(unsigned(free_.size()));
  unsigned i = 0;
  for (const auto& [device, bytes] : free_) {
    list[i].setIndex(device);
    list[i++].setBytes(bytes);
  }
  if (!std::exchange(measuring_, true)) tasks_.add(measure());
}

// Whoever has begun to use a device since it was last looked at is seen now, whatever moves.
kj::Promise<void> Node::measure() {
  return roll_.look()
      .then([this](const Scan& scan) {
        free_.clear();
        for (const auto& [device, memory] : scan.memory) free_[device] = memory.freeBytes;
        for (auto id : mover_.releasedLate(scan)) tellMember(id);
      })
      .attach(kj::defer([this] { measuring_ = false; }));
}

// --- members ------------------------------------------------------------------------------------

void Node::memberSeen(const Member& member, std::string_view because) {
  world_.log.info(Line("member-seen")
                      .add("job", text(member.job))
                      .add("pid", std::int64_t(member.process.identity.pid))
                      .add("because", std::string(because)));
}

// One question at a time: each look brings the next, and the driver may not answer while the call
// that has taken the state away goes on.
void Node::readAgain(MemberId id) {
  if (!readingAgain_.insert(id).second) return;
  auto before = registry_.member(id)->residency;
  auto reading = mover_.adopt(id).then([this, id, before] {
    auto* m = registry_.member(id);
    if (m && m->residency != before) memberChanged(*m);
  });
  tasks_.add(reading.attach(kj::defer([this, id] { readingAgain_.erase(id); })));
}

void Node::memberChanged(Member& member) {
  watchMember(member.id);
  tellMember(member.id);
}

void Node::tellMember(MemberId id) {
  link_.tell([this, id](wire::NodeSession::Client& session) -> kj::Promise<void> {
    auto* m = registry_.member(id);
    if (!m) return kj::READY_NOW;
    auto call = session.memberSeenRequest();
    toWire(m->job, call.initKey());
    toWire(*m, call.initFact());
    return call.send().ignoreResult();
  });
}

// Without a descriptor to watch it by, nothing is known of its end: tried until there is one.
void Node::watchMember(MemberId id) {
  auto* m = registry_.member(id);
  if (!m || m->ended) return;
  auto identity = m->process.identity;
  bool isWatched = false;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { isWatched = watch_.add(identity); })) {
    world_.log.error(Line("member-unwatched")
                         .add("job", text(m->job))
                         .add("pid", std::int64_t(identity.pid))
                         .add("why", sentenceOf(*e)));
    tasks_.add(world_.port.timer().afterDelay(kWatchAgain).then([this, id] { watchMember(id); }));
    return;
  }
  // It ended between being seen and being watched.
  if (!isWatched) tasks_.add(kj::evalLater([this, identity] { processEnded(identity); }));
}

void Node::processEnded(const Identity& identity) {
  if (auto* m = registry_.memberOf(identity)) memberEnded(*m);
  participants_.processEnded(identity);
  byPid_.processEnded(identity);
  steps_.processEnded(identity);
}

void Node::memberEnded(Member& m) {
  if (m.ended) return;
  world_.log.info(
      Line("member-died").add("job", text(m.job)).add("pid", std::int64_t(m.process.identity.pid)));
  m.ended = true;
  registry_.record(m);
  auto id = m.id;
  link_.tell([id](wire::NodeSession::Client& session) {
    auto call = session.memberDiedRequest();
    call.setMember(std::uint64_t(id));
    return call.send().ignoreResult();
  });
  tasks_.add(clearing_.clear(id));
}

void Node::memberCleared(MemberId id) {
  auto* m = registry_.member(id);
  if (!m) return;
  auto job = m->job;
  registry_.erase(id);
  link_.tell([id](wire::NodeSession::Client& session) {
    auto call = session.memberClearedRequest();
    call.setMember(std::uint64_t(id));
    return call.send().ignoreResult();
  });
  settle(job);
}

void Node::settle(const JobName& name) {
  Job* job = registry_.job(name);
  if (!job) return;
  auto* backend = mover_.backendOf(name);
  if (backend && backend->isWeightless()) {
    // With the backend `none` a member is what a participant is, and goes with it.
    for (auto* m : registry_.membersOf(name)) {
      if (!registry_.participantOf(m->process.identity)) memberEnded(*m);
    }
  }
  if (!job->participants.empty() || !job->members.empty()) return;
  world_.log.info(Line("job-ended").add("job", text(name)));
  fence_.forget(name);
  bookings_.drop(name);
  registry_.eraseJob(name);
  link_.tell([name](wire::NodeSession::Client& session) {
    auto call = session.jobEndedRequest();
    toWire(name, call.initKey());
    return call.send().ignoreResult();
  });
}

// --- status -------------------------------------------------------------------------------------

std::string Node::status() const {
  auto overdue = orders_.overdue();
  return "node " + name_ + ", master " + (link_.isUp() ? "up" : link_.whyDown()) + ", " +
         std::to_string(registry_.jobs().size()) + " jobs" +
         (overdue.empty() ? "" : ", OVERDUE " + overdue.front());
}

Health Node::health() const {
  return {.name = name_,
          .version = world_.version,
          .master = link_.isUp() ? "up" : link_.whyDown(),
          .overdue = orders_.overdue(),
          .savedBytes = registry_.savedBytes()};
}

void Node::doctor(ConnectionId connection, std::uint64_t request) {
  tasks_.add(world_.workers
                 .call<std::string>([config = config_, health = health(),
                                     &inventory = world_.inventory, backends = world_.backends] {
                   return examine(config, health, inventory, backends);
                 })
                 .then([this, connection, request](const std::string& found) {
                   auto* c = find(connection);
                   if (!c) return;
                   tsl_reply r{};
                   r.status = TSL_OK;
                   r.bytes = found.size();
                   c->reply(request, r, textAsFile(found));
                 }));
}

void Node::taskFailed(kj::Exception&& exception) {
  world_.log.error(Line("node-task-failed").add("why", sentenceOf(exception)));
}

}  // namespace ts::node
