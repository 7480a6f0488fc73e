#include "cli/master.h"

#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/master_commands.h"
#include "cli/status_sample.h"
#include "support/temp_dir.h"
#include "wire/greet.h"

using namespace ts;
using namespace ts::cli;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

// A master of fixed answers: nobody is drained but "n0", and nothing else is known.
class FakeSession final : public wire::OperatorSession::Server {
  kj::Promise<void> status(StatusContext context) override {
    test::sampleStatus(context.getResults());
    return kj::READY_NOW;
  }
  kj::Promise<void> drain(DrainContext context) override {
    auto outcome = context.getResults().initOutcome();
    auto node = context.getParams().getNode();
    if (node == "n0") return kj::READY_NOW;
    outcome.setCode(wire::Outcome::Code::REFUSED);
    outcome.setDetail(kj::str("the master knows no node \"", node, "\""));
    return kj::READY_NOW;
  }
  kj::Promise<void> pauseGroup(PauseGroupContext) override { return kj::NEVER_DONE; }
  kj::Promise<void> evict(EvictContext) override { return KJ_EXCEPTION(FAILED, "it broke"); }
};

class FakeDoor final : public wire::Door::Server {
  kj::Promise<void> enterOperator(EnterOperatorContext context) override {
    context.getResults().setSession(kj::heap<FakeSession>());
    return kj::READY_NOW;
  }
};

class FakeGreeter final : public wire::Master::Server {
  kj::Promise<void> greet(GreetContext context) override {
    auto results = context.getResults();
    results.setVersion(kWireVersions.max);
    results.setNonce(kj::heapArray<kj::byte>(kNonceBytes));
    results.setAuth("none");
    results.setDoor(kj::heap<FakeDoor>());
    return kj::READY_NOW;
  }
};

// Serves one connection on a thread of its own; `greets` false: accepts and says nothing.
class FakeMaster {
public:
  explicit FakeMaster(bool greets = true) : thread_([this, greets] { serve(greets); }) {
    ready_.get_future().wait();
  }
  ~FakeMaster() { thread_.join(); }
  FakeMaster(const FakeMaster&) = delete;
  FakeMaster& operator=(const FakeMaster&) = delete;
  Places places() const { return {{"unix:" + path(), "--master"}, {}, "none", {}}; }

private:
  std::string path() const { return dir_ / "master.sock"; }
  void serve(bool greets) {
    cli::Loop loop;
    auto listener =
        loop.io->getNetwork().parseAddress(("unix:" + path()).c_str()).wait(loop.scope)->listen();
    ready_.set_value();
    auto stream = listener->accept().wait(loop.scope);
    capnp::Capability::Client greeter = kj::heap<FakeGreeter>();
    if (!greets) {
      char bytes[4096];
      while (stream->tryRead(bytes, 1, sizeof bytes).wait(loop.scope) > 0) {
      }
      return;
    }
    Link link(kj::mv(stream), Link::Side::Listener, kj::mv(greeter));
    link.whenClosed().wait(loop.scope);
  }
  test::TempDir dir_;
  std::promise<void> ready_;
  std::thread thread_;
};

Options command(const std::string& name) {
  Options options;
  options.command = name;
  return options;
}

}  // namespace

TEST_CASE("status and its parts come as tables and as JSON", "[cli]") {
  FakeMaster fake;
  cli::Loop loop;
  Master master(loop, fake.places(), 10s);
  CHECK_THAT(look(master, command("status")), Contains("3 jobs (1 holding, 1 waiting)"));
  CHECK_THAT(look(master, command("nodes")), Contains("NVIDIA H200") && !Contains("GROUP"));
  Options jobs = command("jobs");
  jobs.json = true;
  CHECK(nlohmann::json::parse(look(master, jobs)).size() == 3);
  jobs.group = "none";
  CHECK(nlohmann::json::parse(look(master, jobs)).empty());
}

TEST_CASE("what the master refuses or breaks is exit 1 with its sentence", "[cli]") {
  FakeMaster fake;
  cli::Loop loop;
  Master master(loop, fake.places(), 10s);
  Options drain = command("drain");
  drain.node = "n0";
  CHECK(act(master, drain) == "node n0 is drained\n");
  drain.node = "n9";
  CHECK_THROWS_WITH(act(master, drain), "the master knows no node \"n9\"");
  CHECK_THROWS_WITH(act(master, command("evict")), Contains("it broke"));
  try {
    act(master, drain);
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::Failed);
  }
}

TEST_CASE("a master that does not answer in time is unreachable", "[cli]") {
  SECTION("in the middle of a session") {
    FakeMaster fake;
    cli::Loop loop;
    Master master(loop, fake.places(), 50ms);
    CHECK_THROWS_WITH(act(master, command("pause")), Contains("no answer within 50.0 ms"));
  }
  SECTION("from the start") {
    FakeMaster fake(false);
    cli::Loop loop;
    try {
      Master master(loop, fake.places(), 20ms);
      FAIL("it answered");
    } catch (const Failure& failure) {
      CHECK(failure.exit() == Exit::Unreachable);
      CHECK_THAT(failure.what(), Contains("master.sock (--master)") &&
                                     Contains("tsmasterd --config /etc/timeslice/master.toml"));
    }
  }
}

TEST_CASE("who has named no master is asked where it is", "[cli]") {
  test::TempDir dir;
  cli::Loop loop;
  Places places{{"unix:" + dir / "none.sock", kDefaultPlace}, {}, "none", {}};
  CHECK_THROWS_WITH(Master(loop, places, 1s),
                    Contains("none.sock (the default)") && Contains("; say where it is (master in "
                                                                    "/etc/timeslice/node.toml"));
}

TEST_CASE("another kind of auth is named with the option that helps", "[cli]") {
  FakeMaster fake;
  cli::Loop loop;
  Places places = fake.places();
  places.auth = "munge";
  SECTION("where munge was asked for") {
    CHECK_THROWS_WITH(Master(loop, places, 10s), Contains("auth = \"none\"") && Contains("--auth"));
  }
  SECTION("and not needed where nobody asked and the master is on this machine") {
    places.authByMaster = true;
    CHECK(Master(loop, places, 10s).auth() == "none");
  }
}
