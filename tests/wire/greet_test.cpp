#include "wire/greet.h"

#include <catch2/catch.hpp>

#include "support/loop.h"
#include "wire/link.h"
#include "wire/translate.h"

using namespace ts;

namespace {

// A master that says what the test wants it to say.
struct Script {
  std::uint16_t version = 1;
  std::string auth = "none";
  Generation generation{4, 40};
};

class FakeDoor final : public wire::Door::Server {
public:
  explicit FakeDoor(const Script& script) : script_(script) {}
  kj::Promise<void> enterNode(EnterNodeContext context) override {
    toWire(script_.generation, context.getResults().initGeneration());
    context.getResults().setHeartbeatUs(context.getParams().getReport().getDevices().size());
    return kj::READY_NOW;
  }

private:
  const Script& script_;
};

class FakeMaster final : public wire::Master::Server {
public:
  explicit FakeMaster(const Script& script) : script_(script) {}
  kj::Promise<void> greet(GreetContext context) override {
    auto results = context.getResults();
    results.setVersion(script_.version);
    results.setAuth(script_.auth);
    toWire(script_.generation, results.initGeneration());
    results.setDoor(kj::heap<FakeDoor>(script_));
    return kj::READY_NOW;
  }

private:
  const Script& script_;
};

// A master whose credential says that it is `uid`.
class KnownAuth final : public Auth {
public:
  explicit KnownAuth(uid_t uid) : uid_(uid) {}
  std::string name() const override { return "munge"; }
  Proof prove(Role, const Nonces&) override { return {.ok = true}; }
  Verdict check(Role, const Nonces&, const std::string&) override {
    return {.ok = true, .proven = true, .uid = uid_};
  }

private:
  uid_t uid_;
};

class NoDaemon final : public wire::NodeDaemon::Server {};

struct Pair {
  test::Loop loop;
  Script script;
  std::unique_ptr<Auth> auth = newNoAuth();
  kj::TwoWayPipe pipe = loop.io->newTwoWayPipe();
  Link listener{kj::mv(pipe.ends[0]), Link::Side::Listener,
                wire::Master::Client(kj::heap<FakeMaster>(script))};
  Link caller{kj::mv(pipe.ends[1]), Link::Side::Caller};

  Greeted greeted() {
    return greet(caller.peer<wire::Master>(), *auth, runHere(), 990).wait(loop.scope);
  }
  NodeEntry entered(Generation highest) {
    NodeHello hello{.name = "n1",
                    .highest = highest,
                    .daemon = kj::heap<NoDaemon>(),
                    .report = [](wire::NodeReport::Builder report) { report.initDevices(2); }};
    return enterNode(greeted(), kj::mv(hello), *auth, runHere()).wait(loop.scope);
  }
  // The sentence that a person would read; "" when nothing failed.
  template <class Call>
  std::string failure(Call call) {
    std::string text;
    KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { call(); })) text = sentenceOf(*e);
    return text;
  }
};

}  // namespace

TEST_CASE("a caller learns the version, the generation and the way in", "[wire]") {
  Pair pair;
  Greeted greeted = pair.greeted();
  CHECK(greeted.version == 1);
  CHECK(greeted.generation == Generation{4, 40});
  CHECK(pair.entered({}).heartbeatUs == 2);
}

TEST_CASE("a version that the caller does not speak ends the greeting", "[wire]") {
  Pair pair;
  pair.script.version = 9;
  CHECK_THAT(pair.failure([&] { pair.greeted(); }), Catch::Contains("version 9"));
}

TEST_CASE("another kind of auth is named on both sides", "[wire]") {
  Pair pair;
  pair.script.auth = "munge";
  CHECK_THAT(pair.failure([&] { pair.greeted(); }),
             Catch::Contains("\"munge\"") && Catch::Contains("\"none\""));
}

TEST_CASE("a proven master is root or the user it has to be", "[wire]") {
  for (uid_t uid : {0, 990, 1000}) {
    Pair pair;
    pair.script.auth = "munge";
    pair.auth = std::make_unique<KnownAuth>(uid);
    auto why = pair.failure([&] { pair.greeted(); });
    if (uid != 1000)
      CHECK(why == "");
    else
      CHECK_THAT(why, Catch::Contains("uid 1000") && Catch::Contains("only uid 990"));
  }
}

TEST_CASE("a node refuses a master whose generation is older than the one it follows", "[wire]") {
  Pair pair;
  CHECK_THAT(pair.failure([&] {
    pair.entered({5, 50});
  }),
             Catch::Contains("generation 4") && Catch::Contains("generation 5"));
}

TEST_CASE("a node refuses another master of the same generation", "[wire]") {
  Pair pair;
  CHECK_THAT(pair.failure([&] { pair.entered({4, 41}); }), Catch::Contains("another master"));
  CHECK(pair.entered({4, 40}).generation == Generation{4, 40});
}

TEST_CASE("bytes that are no message end their connection and no other", "[wire]") {
  Pair pair;
  auto pipe = pair.loop.io->newTwoWayPipe();
  Link victim(kj::mv(pipe.ends[0]), Link::Side::Listener,
              wire::Master::Client(kj::heap<FakeMaster>(pair.script)));
  std::string nonsense(64, '\xff');
  pipe.ends[1]->write(nonsense.data(), nonsense.size()).wait(pair.loop.scope);
  CHECK(pair.failure([&] { victim.whenClosed().wait(pair.loop.scope); }) == "");
  CHECK(pair.greeted().version == 1);
}

TEST_CASE("what a library says is put in our words", "[wire]") {
  auto of = [](const char* text) {
    return sentenceOf(kj::Exception(kj::Exception::Type::FAILED, "", 0, kj::str(text)));
  };
  CHECK_THAT(of("DNS lookup failed.; params.host = gpu-head; params.service = "),
             Catch::Contains("\"gpu-head\" has no address"));
  CHECK_THAT(of("remote exception: Message has too many segments."),
             Catch::Contains("6830, not 6831"));
  CHECK(of("remote exception: plain") == "plain");
}
