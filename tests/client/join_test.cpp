#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "client/support.h"

using namespace ts::test;

TEST_CASE("a join tells the node who wants what", "[client]") {
  House house;
  ts_join_options options = house.options();
  options.job = "train-7";
  options.devices = "0,1";
  options.backend = "none";
  options.gang = 4;
  options.priority = -3;
  Joined client(options);
  const tsl_message join = house.node.waitFor(TSL_JOIN);
  CHECK(std::string(join.u.join.group) == "rl");
  CHECK(std::string(join.u.join.job) == "train-7");
  CHECK(std::string(join.u.join.backend) == "none");
  CHECK(join.u.join.gang == 4);
  CHECK(join.u.join.priority == -3);
  CHECK(house.node.devices() == "0,1");
  CHECK(client.state().active == 1);
}

TEST_CASE("what the options leave out comes from the environment", "[client]") {
  House house;
  house.environment.set("TIMESLICE_SOCKET", house.socket);
  house.environment.set("TIMESLICE_GROUP", "from-env");
  house.environment.set("TIMESLICE_JOB", "env.job");
  house.environment.set("TIMESLICE_GANG", "2");
  house.environment.set("TIMESLICE_PRIORITY", "-8");
  house.environment.set("TIMESLICE_BACKEND", "cuda");
  house.environment.set("CUDA_VISIBLE_DEVICES", "2,3");
  ts_client* client = nullptr;
  REQUIRE(ts_join(nullptr, &client) == TS_OK);
  const tsl_message join = house.node.waitFor(TSL_JOIN);
  CHECK(std::string(join.u.join.group) == "from-env");
  CHECK(std::string(join.u.join.job) == "env.job");
  CHECK(std::string(join.u.join.backend) == "cuda");
  CHECK(join.u.join.gang == 2);
  CHECK(join.u.join.priority == -8);
  CHECK(house.node.devices() == "2,3");
  ts_leave(client);
}

TEST_CASE("an empty CUDA_VISIBLE_DEVICES claims nothing", "[client]") {
  House house;
  house.environment.set("CUDA_VISIBLE_DEVICES", "");
  Joined client(house);
  CHECK(house.node.devices() == "none");
}

TEST_CASE("a device list of any length arrives whole", "[client]") {
  House house;
  std::string list;
  for (int i = 0; i < 16; ++i) list += "GPU-01234567-89ab-cdef-0123-456789abcdef,";
  ts_join_options options = house.options();
  options.devices = list.c_str();
  Joined client(options);
  CHECK(house.node.devices() == list);
  CHECK(house.node.count(TSL_CLAIM) > 1);
}

TEST_CASE("without TIMESLICE_* a handle does nothing and succeeds", "[client]") {
  CleanEnvironment environment;
  ts_client* client = nullptr;
  REQUIRE(ts_join(nullptr, &client) == TS_OK);
  ts_grant grant{};
  grant.size = sizeof grant;
  CHECK(ts_yield(client) == TS_OK);
  CHECK(ts_acquire(client, nullptr, &grant) == TS_OK);
  CHECK(ts_try_acquire(client, nullptr) == TS_OK);
  CHECK(ts_acquire_start(client, nullptr) == TS_OK);
  CHECK(ts_acquire_finish(client, nullptr) == TS_OK);
  CHECK(ts_cancel(client) == TS_OK);
  CHECK(ts_should_yield(client) == 0);
  CHECK(ts_fd(client) == -1);
  ts_state state{};
  state.size = sizeof state;
  REQUIRE(ts_get_state(client, &state) == TS_OK);
  CHECK(state.active == 0);
  CHECK(ts_yield(client) == TS_OK);
  ts_leave(client);
}

TEST_CASE("TIMESLICE_REQUIRED refuses to run outside", "[client]") {
  CleanEnvironment environment;
  environment.set("TIMESLICE_REQUIRED", "1");
  ts_client* client = nullptr;
  CHECK(ts_join(nullptr, &client) == TS_ERR_UNAVAILABLE);
  CHECK(client == nullptr);
  CHECK(errorSays("TIMESLICE_REQUIRED=1"));
  environment.set("TIMESLICE_REQUIRED", "0");
  CHECK(ts_join(nullptr, &client) == TS_OK);
  ts_leave(client);
}

TEST_CASE("FF-G2: a job that was promised turns does not run where Slurm's plugin is missing",
          "[client]") {
  House house;
  house.environment.set("TIMESLICE_REQUIRED", "slurm");
  house.environment.set("TIMESLICE_GROUP", "rl");
  house.environment.set("SLURMD_NODENAME", "n7");
  ts_client* client = nullptr;
  auto options = house.options();
  CHECK(ts_join(&options, &client) == TS_ERR_UNAVAILABLE);
  CHECK(client == nullptr);
  CHECK(errorSays("node n7 has started it without the Slurm plugin"));
  ::unsetenv("SLURMD_NODENAME");
}

TEST_CASE("a process that was started in its turn has it at its first acquire, and once",
          "[client]") {
  House house;
  house.node.startFromGate(5);
  Joined client(house);
  CHECK(client.state().entered == 1);
  CHECK(client.state().depth == 0);
  SECTION("it acquires and yields as always") {
    ts_grant grant{};
    grant.size = sizeof grant;
    CHECK(ts_acquire(client, nullptr, &grant) == TS_OK);
    CHECK(grant.epoch == 5);
    CHECK(client.state().depth == 1);
    CHECK(house.node.count(TSL_ACQUIRE) == 0);
    CHECK(ts_yield(client) == TS_OK);
    CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 5);
    CHECK(ts_acquire(client, nullptr, nullptr) == TS_OK);
    CHECK(house.node.count(TSL_ACQUIRE) == 1);
  }
  SECTION("it yields first, since it needs no device yet") {
    CHECK(ts_yield(client) == TS_OK);
    CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 5);
    CHECK(ts_yield(client) == TS_ERR_NOT_ENTERED);
  }
  SECTION("it leaves with it") {
    client.leave();
    CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 5);
  }
}

TEST_CASE("a bad value is named with the place it came from", "[client]") {
  House house;
  ts_client* client = nullptr;
  ts_join_options options = house.options();
  SECTION("a group with a slash") {
    options.group = "a/b";
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("'a/b'"));
    CHECK(errorSays("TIMESLICE_GROUP"));
  }
  SECTION("a job of 64 bytes") {
    const std::string job(64, 'j');
    options.job = job.c_str();
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("64 bytes, at most 63"));
  }
  SECTION("a gang that is no number") {
    house.environment.set("TIMESLICE_GANG", "four");
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("TIMESLICE_GANG='four'"));
  }
  SECTION("a priority that is too large") {
    house.environment.set("TIMESLICE_PRIORITY", "2147483648");
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("2147483648"));
  }
  SECTION("a priority of the options that is too large") {
    options.priority = -10001;
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("priority=-10001 is not from -10000 to 10000"));
  }
  SECTION("a gang of the options that is too large") {
    options.gang = 1000001;
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("gang=1000001 is not from 0 to 1000000"));
  }
  SECTION("a socket path that does not fit") {
    const std::string path = "/" + std::string(120, 's');
    options.socket = path.c_str();
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("at most 107"));
  }
  SECTION("a size that was not set") {
    options.size = 0;
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays("sizeof(ts_join_options)"));
  }
  SECTION("a socket and no group") {
    options.group = nullptr;
    CHECK(ts_join(&options, &client) == TS_ERR_INVALID);
    CHECK(errorSays(
        "no group is named: set TIMESLICE_GROUP, give group=, or start it with tsctl run --group "
        "NAME -- PROGRAM"));
  }
  SECTION("no place for the handle") {
    CHECK(ts_join(&options, nullptr) == TS_ERR_INVALID);
  }
  CHECK(client == nullptr);
  CHECK(house.node.count(TSL_HELLO) == 0);
}

TEST_CASE("options of a newer header are taken as far as they are understood", "[client]") {
  House house;
  struct {
    ts_join_options known;
    std::uint64_t later;
  } newer{house.options(), 0};
  newer.known.size = sizeof newer;
  ts_client* client = nullptr;
  REQUIRE(ts_join(&newer.known, &client) == TS_OK);
  ts_leave(client);
  newer.later = 1;
  CHECK(ts_join(&newer.known, &client) == TS_ERR_INVALID);
  CHECK(errorSays("install the newer library"));
}

TEST_CASE("options of an older header are enough", "[client]") {
  House house;
  ts_join_options older = house.options();
  older.size = offsetof(ts_join_options, job);
  older.job = "/beyond what the older header had/";
  ts_client* client = nullptr;
  REQUIRE(ts_join(&older, &client) == TS_OK);
  CHECK(std::string(house.node.waitFor(TSL_JOIN).u.join.job).empty());
  ts_leave(client);
}

TEST_CASE("without a daemon the error says where it looked and how to start it", "[client]") {
  CleanEnvironment environment;
  TempDir dir;
  const std::string socket = dir / "node.sock";
  environment.set("TIMESLICE_SOCKET", socket);
  environment.set("TIMESLICE_GROUP", "rl");
  ts_client* client = nullptr;
  SECTION("no socket") {}
  SECTION("a socket that nobody listens on") {
    FakeNode gone(socket);
  }
  SECTION("a file") {
    std::ofstream(socket) << "text";
  }
  CHECK(ts_join(nullptr, &client) == TS_ERR_UNAVAILABLE);
  CHECK(errorSays(socket));
  CHECK(errorSays("tsnoded --config /etc/timeslice/node.toml"));
}

TEST_CASE("a stream socket is told from a node daemon's", "[client]") {
  CleanEnvironment environment;
  TempDir dir;
  const std::string socket = dir / "node.sock";
  environment.set("TIMESLICE_SOCKET", socket);
  environment.set("TIMESLICE_GROUP", "rl");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd, 1) == 0);
  ts_client* client = nullptr;
  CHECK(ts_join(nullptr, &client) == TS_ERR_UNAVAILABLE);
  CHECK(errorSays("is not the socket of a node daemon"));
  ::close(fd);
}

TEST_CASE("what the node refuses at the door is told with its reason", "[client]") {
  House house;
  const ts_join_options options = house.options();
  const auto [status, name] =
      GENERATE(table<int, const char*>({{TSL_UNKNOWN_GROUP, "UNKNOWN_GROUP"},
                                        {TSL_PERMISSION, "PERMISSION"},
                                        {TSL_DEVICE_OWNED, "DEVICE_OWNED"},
                                        {TSL_NO_CLAIM, "NO_CLAIM"},
                                        {TSL_ALREADY_JOINED, "ALREADY_JOINED"},
                                        {TSL_MASTER_DOWN, "MASTER_DOWN"}}));
  house.node.answer(TSL_JOIN, status, "because of 42");
  ts_client* client = nullptr;
  CHECK(ts_join(&options, &client) == status);
  CHECK(client == nullptr);
  CHECK(errorSays(name));
  CHECK(errorSays("because of 42"));
  CHECK(errorSays("'rl'"));
}

TEST_CASE("a node of another version is refused by name", "[client]") {
  House house;
  house.node.answer(TSL_HELLO, TSL_VERSION_MISMATCH, "this node speaks 2 to 3");
  ts_client* client = nullptr;
  const ts_join_options options = house.options();
  CHECK(ts_join(&options, &client) == TS_ERR_VERSION);
  CHECK(errorSays("this node speaks 2 to 3"));
}

TEST_CASE("a node that speaks a version that nobody offered it is refused with both", "[client]") {
  House house;
  house.node.ignore(TSL_HELLO);
  std::thread node([&] {
    tsl_message answer{};
    answer.header = {TSL_MAGIC, TSL_VERSION + 1, TSL_REPLY,
                     house.node.waitFor(TSL_HELLO).header.request};
    house.node.sendRaw({reinterpret_cast<const char*>(&answer), sizeof answer});
  });
  ts_client* client = nullptr;
  const ts_join_options options = house.options();
  CHECK(ts_join(&options, &client) == TS_ERR_VERSION);
  CHECK(errorSays("chose version 2"));
  CHECK(errorSays("speaks 1 only"));
  node.join();
}

TEST_CASE("a join ends at its deadline", "[client]") {
  House house;
  ts_join_options options = house.options();
  options.deadline_ms = 30;
  ts_client* client = nullptr;
  SECTION("when the daemon accepts nobody") {
    house.node.freeze();
  }
  SECTION("when it never says hello") {
    house.node.ignore(TSL_HELLO);
  }
  SECTION("when it never answers the join") {
    house.node.ignore(TSL_JOIN);
  }
  CHECK(ts_join(&options, &client) == TS_ERR_TIMED_OUT);
  CHECK(errorSays(house.socket));
  house.node.thaw();
}

TEST_CASE("a full backlog does not block a join beyond its deadline", "[client]") {
  CleanEnvironment environment;
  TempDir dir;
  const std::string socket = dir / "node.sock";
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd, 0) == 0);
  const int first = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(first, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ts_join_options options{};
  options.size = sizeof options;
  options.socket = socket.c_str();
  options.group = "rl";
  options.deadline_ms = 30;
  ts_client* client = nullptr;
  CHECK(ts_join(&options, &client) == TS_ERR_UNAVAILABLE);
  CHECK(errorSays("backlog is full"));
  ::close(first);
  ::close(fd);
}

namespace {
std::set<int> survivingExec() {
  std::set<int> found;
  for (int fd = 3; fd < 256; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.insert(fd);
  }
  return found;
}
}  // namespace

TEST_CASE("no descriptor of the library survives an exec", "[client]") {
  House house;
  const std::set<int> before = survivingExec();
  Joined client(house);
  REQUIRE(ts_fd(client) >= 0);
  house.node.closeAll();  // also none of the second connection
  REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  CHECK(survivingExec() == before);
}

TEST_CASE("a leave gives up what is held, and takes every descriptor along", "[client]") {
  House house;
  const int before = ::dup(0);
  ::close(before);
  {
    Joined client(house);
    REQUIRE(ts_fd(client) >= 0);
    REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
    REQUIRE(ts_acquire(client, nullptr, nullptr) == TS_OK);
  }
  CHECK(house.node.waitFor(TSL_YIELD).u.yield.epoch_counter == 1);
  house.node.waitFor(TSL_LEAVE);
  house.node.waitClosed();
  const int after = ::dup(0);
  ::close(after);
  CHECK(after == before);
  ts_leave(nullptr);
}
