// What Slurm says, and what it does not say.
#include "master/house.h"

using namespace ts;
using namespace ts::test;

namespace {

MasterConfig hearing() {
  MasterConfig config;
  config.heartbeat = std::chrono::milliseconds(2);
  config.suspectAfter = std::chrono::milliseconds(200);
  config.recoveryGrace = std::chrono::milliseconds(0);
  config.slurm = true;
  config.slurmPeriod = std::chrono::milliseconds(1);
  config.slurmGrace = std::chrono::milliseconds(1);
  return config;
}

// Job 17.0 of Slurm's holds node n1; Slurm says so.
struct World {
  MasterHouse house;
  ScriptedNode n1{house.loop, "n1"};

  explicit World(const MasterConfig& config = hearing()) : house(config) {
    house.slurm.nodes = {"n1", "n2"};
    house.slurm.jobs[17] = SlurmWord::Job::Running;
    n1.slurmJobs["17.0"] = 17;
    n1.connect(house.address);
    n1.join("rl", "17.0", 1);
    n1.acquire(1, 100);
    house.until([&] { return n1.entered(1); });
  }
  // Enough to have concluded whatever can be concluded.
  void letSlurmSpeak() {
    auto asked = house.slurmAsked;
    house.until([&] { return house.slurmAsked > asked + 3; });
  }
  bool killed() { return n1.ordered("kill 17.0") > 0; }
};

}  // namespace

TEST_CASE("a job that Slurm has no more is ended, once", "[master]") {
  World w;
  w.letSlurmSpeak();
  CHECK_FALSE(w.killed());
  w.house.slurm.jobs.erase(17);
  w.house.until([&] { return w.killed(); });
  w.letSlurmSpeak();
  CHECK(w.n1.ordered("kill 17.0") == 1);
}

TEST_CASE("a job that waits in Slurm's queue again has left nothing that may go on", "[master]") {
  World w;
  w.house.slurm.jobs[17] = SlurmWord::Job::Queued;
  w.house.until([&] { return w.killed(); });
}

TEST_CASE("jobs that are none of Slurm's, or of another cluster, are not asked after", "[master]") {
  World w;
  w.n1.join("rl", "by-hand", 2);
  w.house.slurm.jobs.clear();
  w.house.slurm.nodes = {"n2"};
  w.letSlurmSpeak();
  CHECK(w.n1.ordered("kill 17.0") == 0);
  CHECK(w.house.log.count("slurm-unknown-node") == 1);  // said once
  CHECK(w.house.log.line({"slurm-unknown-node", "job=rl/17.0", "node=n1"}) != "");
  w.house.slurm.nodes = {"n1"};
  w.house.until([&] { return w.killed(); });
  CHECK(w.n1.ordered("kill by-hand") == 0);
}

TEST_CASE("a Slurm that does not answer says nothing of any job", "[master]") {
  World w;
  w.house.slurm = {.why = "squeue: no answer within 10 s"};
  w.letSlurmSpeak();
  CHECK_FALSE(w.killed());
}

TEST_CASE("of a job that came after the question its answer says nothing", "[master]") {
  auto config = hearing();
  std::vector<kj::Own<kj::PromiseFulfiller<SlurmWord>>> open;
  World w(config);
  w.house.slurm.jobs.erase(17);
  w.house.askSlurm = [&] {
    auto paf = kj::newPromiseAndFulfiller<SlurmWord>();
    open.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  };
  w.house.restart();
  w.house.until([&] { return !open.empty(); });
  w.n1.connect(w.house.address);
  open.front()->fulfill(SlurmWord(w.house.slurm));
  w.house.until([&] { return open.size() > 1; });
  CHECK_FALSE(w.killed());
  open.back()->fulfill(SlurmWord(w.house.slurm));
  w.house.until([&] { return w.killed(); });
}

TEST_CASE("FF-G15: a node that is lost is dead when Slurm has lost it too, and no sooner",
          "[master]") {
  World w;
  w.house.slurm.down = {"n1"};
  w.letSlurmSpeak();
  CHECK(w.house.state("n1") == NodeState::Up);  // it answers: Slurm is mistaken
  w.house.slurm.down.clear();
  w.n1.disconnect();
  w.house.until([&] { return w.house.state("n1") == NodeState::Suspect; });
  w.letSlurmSpeak();
  CHECK(w.house.state("n1") == NodeState::Suspect);
  w.house.slurm.down = {"n1"};
  w.house.until([&] { return w.house.state("n1") == NodeState::Dead; });
  CHECK(w.house.shell().directory().jobs().empty());
  w.n1.connect(w.house.address);
  w.house.until([&] { return w.killed(); });  // what comes back with it is not welcome
}

TEST_CASE("nobody asks Slurm where it is not configured, or has nothing to say", "[master]") {
  auto config = hearing();
  config.slurm = false;
  World w(config);
  w.house.slurm.jobs.clear();
  w.house.shell().lost(*w.house.shell().directory().findNode("n1"));
  auto beats = w.n1.heartbeats;
  w.house.until([&] { return w.n1.heartbeats > beats + 5; });
  CHECK(w.house.slurmAsked == 0);
}

TEST_CASE("what is left of a job some time after its epilog is ended without asking", "[master]") {
  auto config = hearing();
  config.slurm = false;
  World w(config);
  CHECK(w.house.master->slurm.ended(18) == 0);
  CHECK(w.house.master->slurm.ended(0) == 0);
  CHECK(w.house.master->slurm.ended(17) == 1);
  w.house.until([&] { return w.killed(); });
}

TEST_CASE("FF-G11: a job that Slurm suspends is known as that until it is resumed", "[master]") {
  World w;
  auto suspended = [&] {
    return w.house.shell().directory().find(JobName{"rl", "17.0"})->suspended;
  };
  w.house.slurm.jobs[17] = SlurmWord::Job::Suspended;
  w.house.until(suspended);
  w.house.slurm.jobs[17] = SlurmWord::Job::Running;
  w.house.until([&] { return !suspended(); });
  CHECK_FALSE(w.killed());
}

TEST_CASE("FF-G11: while Slurm stops jobs in turn no step begins", "[master]") {
  World w;
  auto admit = [&] {
    auto request = w.n1.session().admitRequest();
    toWire({"rl", "18.0"}, request.initSpec().initKey());
    request.initDevices(1);
    return fromWire(request.send().wait(w.house.loop.scope).getOutcome(), NodeId{});
  };
  CHECK(admit().ok());
  w.house.slurm.preempts = "GANG,SUSPEND";
  w.house.until([&] { return !admit().ok(); });
  CHECK(admit().detail.find("PreemptMode=GANG,SUSPEND of slurm.conf") == 0);
  w.n1.leave(1);
  w.n1.endJob("rl", "17.0");
  w.house.until([&] { return w.house.shell().directory().jobs().empty(); });
  w.house.slurm.preempts = "";
  w.house.until([&] { return admit().ok(); });
}

TEST_CASE("what Slurm said counts no more once it is not to be asked", "[master]") {
  World w;
  auto suspended = [&] {
    return w.house.shell().directory().find(JobName{"rl", "17.0"})->suspended;
  };
  w.house.slurm.jobs[17] = SlurmWord::Job::Suspended;
  w.house.slurm.preempts = "GANG,SUSPEND";
  w.house.until([&] { return suspended() && !w.house.shell().whyNoSteps().empty(); });
  w.house.config.slurm = false;
  w.house.until([&] { return !suspended() && w.house.shell().whyNoSteps().empty(); });
}
