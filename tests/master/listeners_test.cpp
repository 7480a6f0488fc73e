// Who connects to the master and does not come in, or comes too often.
#include "master/listeners.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "master/house.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::test;

namespace {

// While it lives this process may have so many descriptors, counted as the kernel does.
class Descriptors {
public:
  explicit Descriptors(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit few{most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  static Descriptors none() {
    int lowest = ::dup(0);
    ::close(lowest);
    return Descriptors(rlim_t(lowest));
  }
  ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

private:
  rlimit before_{};
};

using Stream = kj::Own<kj::AsyncIoStream>;

Stream connectTo(MasterHouse& house, const std::string& address) {
  return house.loop.address(address.c_str())->connect().wait(house.loop.scope);
}

bool hasEnded(MasterHouse& house, kj::AsyncIoStream& stream) {
  char byte;
  return stream.tryRead(&byte, 1, 1).then([](size_t n) { return n == 0; }).wait(house.loop.scope);
}

std::size_t connections(MasterHouse& house) {
  return house.master->listeners.connections();
}

// An operator of this machine, greeting and all.
struct Operator {
  kj::Own<Link> link;
  wire::OperatorSession::Client session;

  Operator(MasterHouse& house, const std::string& address)
      : link(kj::heap<Link>(connectTo(house, address), Link::Side::Caller)),
        session(enter(house, *link)) {}

  static wire::OperatorSession::Client enter(MasterHouse& house, Link& link) {
    auto greeted =
        greet(link.peer<wire::Master>(), *house.auth, runHere(), 0).wait(house.loop.scope);
    return enterOperator(kj::mv(greeted), *house.auth, runHere()).wait(house.loop.scope);
  }
};

}  // namespace

TEST_CASE("FF-E1: of those that do not prove themselves the oldest goes, nodes still come in",
          "[master]") {
  constexpr std::size_t kMost = 64 / 4;
  std::optional<MasterHouse> house;
  {
    Descriptors few(64);
    house.emplace();
  }
  std::vector<Stream> idle;
  for (std::size_t i = 0; i <= kMost; ++i) idle.push_back(connectTo(*house, house->address));
  CHECK(hasEnded(*house, *idle.front()));
  CHECK(connections(*house) == kMost);
  ScriptedNode node(house->loop, "n1");
  node.connect(house->address);
  CHECK(house->state("n1") == NodeState::Up);
  // A node that is in does not count among them, and stays.
  for (std::size_t i = 0; i < 2 * kMost; ++i) idle.push_back(connectTo(*house, house->address));
  house->until([&] { return connections(*house) == kMost + 1; });
  CHECK(node.join("rl", "A", 1).ok());
}

TEST_CASE("FF-E1: a master without descriptors hears again when there are some", "[master]") {
  MasterHouse house;
  int failures = 0;
  house.log.log.tee(
      [&](Level, const std::string& line) { failures += line.starts_with("accept-failed"); });
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  kj::AutoCloseFd client(fd);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::uint16_t(std::stoi(house.address.substr(house.address.rfind(':') + 1))));
  {
    auto none = Descriptors::none();
    REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
    house.until([&] { return failures >= 1; });
    CHECK(connections(house) == 0);
  }
  house.until([&] { return connections(house) == 1; });
}

TEST_CASE("FF-E1: a flood of strangers leaves a line, not a history of lines", "[master]") {
  std::vector<std::string> lines;
  std::optional<MasterHouse> house;
  {
    Descriptors few(64);
    house.emplace();
  }
  house->log.log.tee([&](Level, const std::string& line) { lines.push_back(line); });
  std::vector<Stream> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connectTo(*house, house->address));
  house->until([&] { return connections(*house) <= 16; });
  auto told = std::ranges::count_if(lines, [](const auto& l) {
    return l.starts_with("hang-up") && l.find("too many of") != std::string::npos;
  });
  CHECK(told >= 1);
  CHECK(told < 100 - 16);  // of as many that were hung up on: one line for each would fail
}

TEST_CASE("FF-E1: a user has so many sessions, and is told of it", "[master]") {
  TempDir dir;
  MasterHouse house(MasterConfig{.sessionsPerUser = 2});
  auto address = house.master->listeners.unixSocket(dir / "master.sock");
  std::optional<Operator> a(std::in_place, house, address), b(std::in_place, house, address);
  CHECK_THROWS_WITH(Operator(house, address), Catch::Contains("has 2 sessions at the master") &&
                                                  Catch::Contains("sessions_per_user"));
  a.reset();
  house.until([&] { return connections(house) == 1; });
  Operator c(house, address);
  CHECK_NOTHROW(c.session.statusRequest().send().wait(house.loop.scope));
}
