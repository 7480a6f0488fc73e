// What people see and do through an operator session.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "master/house.h"
#include "master/status.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::test;

namespace {

// Collects lines; takes none while `stuck`.
class Sink final : public wire::EventSink::Server {
public:
  struct Seen {
    std::vector<std::string> lines;
    bool stuck = false;
    std::size_t with(const std::string& what) const {
      return std::size_t(std::ranges::count_if(
          lines, [&](const auto& l) { return l.find(what) != std::string::npos; }));
    }
  };
  explicit Sink(Seen& seen) : seen_(seen) {}
  kj::Promise<void> event(EventContext context) override {
    seen_.lines.push_back(text(context.getParams().getLine().getText()));
    if (seen_.stuck) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }

private:
  Seen& seen_;
};

struct Desk {
  MasterHouse house;
  ScriptedNode node{house.loop, "n1"};
  kj::Own<Link> link;

  explicit Desk(MasterConfig config = {}) : house(std::move(config)) {
    node.connect(house.address);
  }

  wire::OperatorSession::Client as(std::optional<uid_t> uid) {
    return house.master->operators.open(uid);
  }
  // Over TCP, greeting and all.
  wire::OperatorSession::Client connected() {
    auto stream = house.loop.address(house.address)->connect().wait(house.loop.scope);
    link = kj::heap<Link>(kj::mv(stream), Link::Side::Caller);
    auto greeted =
        greet(link->peer<wire::Master>(), *house.auth, runHere(), 0).wait(house.loop.scope);
    return enterOperator(kj::mv(greeted), *house.auth, runHere()).wait(house.loop.scope);
  }
  template <class Request>
  Outcome outcome(Request request) {
    return fromWire(request.send().wait(house.loop.scope).getOutcome(), NodeId{});
  }
  Outcome pause(wire::OperatorSession::Client session, const char* group, bool on) {
    auto call = session.pauseGroupRequest();
    call.setGroup(group);
    call.setOn(on);
    return outcome(kj::mv(call));
  }
  Outcome drain(const char* node, bool on) {
    auto call = as(0).drainRequest();
    call.setNode(node);
    call.setOn(on);
    return outcome(kj::mv(call));
  }
  Outcome evict(wire::OperatorSession::Client session, const char* job) {
    auto call = session.evictRequest();
    call.setJob(job);
    return outcome(kj::mv(call));
  }
};

}  // namespace

TEST_CASE("P54, P55: status shows groups, jobs and nodes by name", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  desk.node.join("rl", "B", 2);
  desk.node.acquire(1, 100);
  desk.house.until([&] { return desk.node.entered(1); });
  desk.node.acquire(2, 200);
  auto status = desk.connected().statusRequest().send().wait(desk.house.loop.scope);
  CHECK(status.getVersion() == "test");
  REQUIRE(status.getGroups().size() == 1);
  CHECK(status.getGroups()[0].getName() == "rl");
  CHECK(status.getGroups()[0].getHolders()[0] == "A");
  CHECK(status.getGroups()[0].getQueue()[0] == "B");
  REQUIRE(status.getJobs().size() == 2);
  CHECK(status.getJobs()[0].getPhase() == "holding");
  CHECK(status.getJobs()[1].getPlace() == 1);
  CHECK(status.getJobs()[1].getWaitsFor()[0].getName() == "A");
  CHECK(status.getJobs()[0].getClaim()[0].getNode() == "n1");
  REQUIRE(status.getNodes().size() == 1);
  CHECK(status.getNodes()[0].getState() == "up");
}

TEST_CASE("why tells of the job, then of who is before it", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  desk.node.join("rl", "B", 2);
  desk.node.acquire(1, 100);
  desk.house.until([&] { return desk.node.entered(1); });
  desk.node.acquire(2, 200);
  auto call = desk.connected().whyRequest();
  call.setJob("rl/B");
  auto answer = call.send().wait(desk.house.loop.scope);
  REQUIRE(answer.getJobs().size() == 2);
  CHECK(answer.getJobs()[0].getKey().getName() == "B");
  CHECK(answer.getJobs()[1].getKey().getName() == "A");
}

TEST_CASE("P45: a name that nobody has, or several, is said so", "[master]") {
  MasterConfig config;
  Desk desk(config);
  desk.node.join("rl", "A", 1);
  auto session = desk.as(std::nullopt);
  CHECK_THAT(desk.evict(session, "nope").detail, Catch::Contains("no job \"nope\""));
}

TEST_CASE("a job that leaves for another says for whom", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  desk.node.join("rl", "B", 2);
  desk.node.seeMember(10, "rl", "A", 100);
  desk.node.acquire(1, 100);
  desk.house.until([&] { return desk.node.entered(1); });
  desk.node.acquire(2, 200);
  desk.node.held = "save";
  desk.node.yield(1);
  desk.house.until([&] { return desk.node.ordered("save A") == 1; });
  auto status = desk.connected().statusRequest().send().wait(desk.house.loop.scope);
  auto leaving = status.getJobs()[0];
  CHECK(leaving.getPhase() == "switching");
  CHECK(leaving.getPlace() == 0);
  REQUIRE(leaving.getWaitsFor().size() == 1);
  CHECK(leaving.getWaitsFor()[0].getName() == "B");
  desk.node.answerHeld();
  desk.house.until([&] { return desk.node.entered(2); });
}

TEST_CASE("a job whose gang is broken says what was lost, and what ends it", "[master]") {
  Desk desk;
  ScriptedNode n2(desk.house.loop, "n2");
  n2.connect(desk.house.address);
  desk.node.join("rl", "A", 1);
  n2.join("rl", "A", 1);
  n2.disconnect();
  desk.house.until([&] { return desk.house.state("n2") == NodeState::Suspect; });
  auto verdict = desk.as(0).declareDeadRequest();
  verdict.setNode("n2");
  CHECK(desk.outcome(kj::mv(verdict)).ok());
  auto status = desk.connected().statusRequest().send().wait(desk.house.loop.scope);
  CHECK(status.getJobs()[0].getPhase() == "broken");
  CHECK_THAT(std::string(status.getJobs()[0].getDetail().cStr()),
             Catch::Contains("node n2 is dead") && Catch::Contains("broken_grace, 30000 ms"));
}

TEST_CASE("a paused group grants nothing until it is resumed", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  auto session = desk.as(0);
  CHECK(desk.pause(session, "rl", true).ok());
  desk.node.acquire(1, 100);
  CHECK(desk.node.ordered("grant A") == 0);
  CHECK(desk.pause(session, "rl", false).ok());
  desk.house.until([&] { return desk.node.entered(1); });
}

TEST_CASE("a pause outlives the master, until it is resumed", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  CHECK(desk.pause(desk.as(0), "rl", true).ok());
  desk.house.restart();
  desk.node.connect(desk.house.address);
  desk.node.acquire(1, 100);
  CHECK(desk.node.ordered("grant A") == 0);
  auto status = desk.connected().statusRequest().send().wait(desk.house.loop.scope);
  CHECK(status.getGroups()[0].getPaused());
  CHECK(desk.pause(desk.as(0), "rl", false).ok());
  desk.house.until([&] { return desk.node.entered(1); });
  desk.house.restart();
  CHECK_FALSE(desk.house.master->standing.isPaused("rl"));
}

TEST_CASE("a drain outlives the master, until the node is taken back", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  CHECK(desk.drain("n1", true).ok());
  desk.house.restart();
  desk.node.connect(desk.house.address);
  desk.node.acquire(1, 100);
  CHECK(desk.node.ordered("grant A") == 0);
  CHECK(desk.house.shell().directory().findNode("n1")->drained);
  CHECK(desk.drain("n1", false).ok());
  desk.house.until([&] { return desk.node.entered(1); });
}

TEST_CASE("a pause of a group that has no job and no section is refused", "[master]") {
  MasterConfig config;
  config.anyGroup = true;
  config.groups["eval"];
  Desk desk(config);
  desk.node.join("rl", "A", 1);
  auto slip = desk.pause(desk.as(0), "lr", true);
  CHECK(slip.cause == Cause::UnknownGroup);
  CHECK(slip.detail == "no group \"lr\"; known: eval, rl");
  CHECK(desk.pause(desk.as(0), "eval", true).ok());
  desk.house.restart();
  CHECK(desk.pause(desk.as(0), "eval", false).ok());
}

TEST_CASE("an evicted job's waiters are refused", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  desk.node.join("rl", "B", 2);
  desk.node.acquire(1, 100);
  desk.house.until([&] { return desk.node.entered(1); });
  desk.node.acquire(2, 200);
  CHECK(desk.evict(desk.as(0), "B").ok());
  desk.house.until([&] { return !desk.node.refusals.empty(); });
  CHECK(desk.node.refusals[0].cause == Cause::Evicted);
  CHECK(desk.node.refusals[0].holder.empty());  // not itself
}

TEST_CASE("FF-F1: users see and touch their own jobs only", "[master]") {
  Desk desk;
  desk.node.join("rl", "mine", 1, {0}, 4001);
  desk.node.join("rl", "theirs", 2, {0}, 4002);
  auto session = desk.as(4001);
  auto status = session.statusRequest().send().wait(desk.house.loop.scope);
  REQUIRE(status.getJobs().size() == 1);
  CHECK(status.getJobs()[0].getKey().getName() == "mine");
  CHECK(desk.evict(session, "theirs").cause == Cause::Forbidden);
  CHECK(desk.evict(session, "mine").ok());
  CHECK(desk.pause(session, "rl", true).cause == Cause::Forbidden);
}

TEST_CASE("configured operators may do everything", "[master]") {
  MasterConfig config;
  config.operators = {4003};
  Desk desk(config);
  desk.node.join("rl", "A", 1, {0}, 4001);
  CHECK(desk.pause(desk.as(4003), "rl", true).ok());
  CHECK(desk.evict(desk.as(4003), "A").ok());
}

TEST_CASE("a drained node gets no new grant", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  auto call = desk.as(0).drainRequest();
  call.setNode("n1");
  call.setOn(true);
  CHECK(desk.outcome(kj::mv(call)).ok());
  desk.node.acquire(1, 100);
  CHECK(desk.node.ordered("grant A") == 0);
  auto undrain = desk.as(0).drainRequest();
  undrain.setNode("n1");
  CHECK(desk.outcome(kj::mv(undrain)).ok());
  desk.house.until([&] { return desk.node.entered(1); });
}

TEST_CASE("only a node that is away can be declared dead", "[master]") {
  Desk desk;
  auto verdict = [&] {
    auto call = desk.as(0).declareDeadRequest();
    call.setNode("n1");
    return desk.outcome(kj::mv(call));
  };
  CHECK_THAT(verdict().detail, Catch::Contains("n1 is up"));
  desk.node.disconnect();
  desk.house.until([&] { return desk.house.state("n1") == NodeState::Suspect; });
  CHECK(verdict().ok());
  CHECK(desk.house.state("n1") == NodeState::Dead);
}

TEST_CASE("events tell what was and follow what comes", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  Sink::Seen seen;
  auto call = desk.connected().eventsRequest();
  call.setSink(kj::heap<Sink>(seen));
  auto handle = call.send().wait(desk.house.loop.scope).getHandle();
  desk.house.until([&] { return seen.with("join group=rl job=A") == 1; });
  desk.node.acquire(1, 100);
  desk.house.until([&] { return seen.with("grant group=rl job=A") == 1; });
  desk.node.yield(1);
  desk.house.until([&] { return seen.with("yield group=rl job=A") == 1; });
}

TEST_CASE("events of an earlier master come from the store", "[master]") {
  MasterHouse house;
  house.log.log.info(Line("grant").add("job", "long-ago"));
  house.master->history.storeNow();
  house.restart();
  Sink::Seen seen;
  auto call = house.master->operators.open(0).eventsRequest();
  call.setSink(kj::heap<Sink>(seen));
  auto handle = call.send().wait(house.loop.scope).getHandle();
  house.log.log.info(Line("grant").add("job", "now"));
  house.until([&] { return seen.with("now") == 1; });
  CHECK(seen.with("long-ago") == 1);
  CHECK(seen.lines.front().find("long-ago") != std::string::npos);
}

TEST_CASE("FF-F1: users follow the events of their own jobs only", "[master]") {
  Desk desk;
  Sink::Seen seen;
  auto call = desk.as(4001).eventsRequest();
  call.setSink(kj::heap<Sink>(seen));
  auto handle = call.send().wait(desk.house.loop.scope).getHandle();
  desk.node.join("rl", "theirs", 2, {0}, 40010);
  desk.node.join("rl", "mine", 1, {0}, 4001);
  desk.house.until([&] { return seen.lines.size() == 1; });
  CHECK(seen.with("job=mine") == 1);
}

TEST_CASE("FF-E9: a reader that is too far behind is dropped with a last line", "[master]") {
  Loop loop;
  Store store(":memory:");
  Workers workers;
  History history(store, workers, 10);
  Sink::Seen seen{.stuck = true};
  history.add("first");
  auto handle = history.follow(0, kj::heap<Sink>(seen), nullptr);
  loop.pumpUntil([&] { return seen.lines.size() == 1; });
  for (int i = 0; i < 50; ++i) history.add("line " + std::to_string(i));
  loop.pumpUntil([&] { return seen.lines.size() == 2; });
  CHECK_THAT(seen.lines.back(), Catch::Contains("dropped"));
  for (int i = 0; i < 50; ++i) history.add("line " + std::to_string(i));
  loop.scope.poll();
  CHECK(seen.lines.size() == 2);
}

namespace {

// A disk that takes nothing, for one attempt.
std::string troubleOnFullDisk(Loop& loop, History& history) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, none{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  none.rlim_max = before.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  history.add("lost");
  history.store().wait(loop.scope);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  return history.takeTrouble();
}

}  // namespace

TEST_CASE("P44: a store that fails is told of once, until it works again", "[master]") {
  Loop loop;
  TempDir dir;
  Store store(dir / "m.db");
  Workers workers;
  History history(store, workers);
  CHECK_THAT(troubleOnFullDisk(loop, history), Catch::Contains(dir / "m.db"));
  CHECK(troubleOnFullDisk(loop, history).empty());
  CHECK(history.lost() == 2);
  history.add("kept");
  history.store().wait(loop.scope);
  CHECK(history.takeTrouble().empty());
  CHECK(history.lost() == 2);
  CHECK_FALSE(troubleOnFullDisk(loop, history).empty());
}

TEST_CASE("dropping the handle ends the events", "[master]") {
  Loop loop;
  Store store(":memory:");
  Workers workers;
  History history(store, workers);
  Sink::Seen seen;
  auto handle = history.follow(0, kj::heap<Sink>(seen), nullptr);
  history.add("one");
  loop.pumpUntil([&] { return seen.lines.size() == 1; });
  handle = nullptr;
  history.add("two");
  loop.scope.poll();
  CHECK(seen.lines.size() == 1);
}

TEST_CASE("FF-E9: so many follow the events, and the next is told so", "[master]") {
  Loop loop;
  Store store(":memory:");
  Workers workers;
  History history(store, workers);
  Sink::Seen seen;
  std::vector<kj::Own<wire::OperatorSession::Handle::Server>> handles;
  for (int i = 0; i < 256; ++i) handles.push_back(history.follow(0, kj::heap<Sink>(seen), nullptr));
  CHECK_THROWS_WITH(history.follow(0, kj::heap<Sink>(seen), nullptr),
                    Catch::Contains("256 readers follow the events already"));
  handles.pop_back();
  handles.push_back(history.follow(0, kj::heap<Sink>(seen), nullptr));
  history.add("one");
  loop.pumpUntil([&] { return seen.with("one") == 256; });
}

TEST_CASE("the dashboard's JSON names what the master knows", "[master]") {
  Desk desk;
  desk.node.join("rl", "A", 1);
  std::string json = statusJson(desk.house.master->operators);
  CHECK_THAT(json,
             Catch::Contains("\"rl\"") && Catch::Contains("\"A\"") && Catch::Contains("\"n1\""));
}
