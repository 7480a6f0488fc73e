#include "config/config.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

using namespace ts;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

struct File {
  test::TempDir dir;
  std::string path = dir / "x.toml";
  explicit File(const std::string& text) { std::ofstream(path) << text; }
};

// All errors, one a line, with the folder cut away.
std::string textOf(const std::vector<ConfigError>& errors, const std::string& dir) {
  std::string all;
  for (const ConfigError& error : errors) all += error.text + "\n";
  for (size_t at; (at = all.find(dir + "/")) != std::string::npos;) all.erase(at, dir.size() + 1);
  return all;
}

std::string masterErrors(const std::string& text) {
  File file(text);
  return textOf(loadMasterConfig(file.path).errors, file.dir.path());
}

std::string nodeErrors(const std::string& text) {
  File file(text);
  return textOf(loadNodeConfig(file.path).errors, file.dir.path());
}

}  // namespace

TEST_CASE("a master's file is read, and what it leaves out has its default", "[config]") {
  File file(R"(
listen = ["0.0.0.0:7000", "[::]:7000"]
operators = ["root", "1000"]
any_group = false
suspect_after = "20 s"

[defaults]
hold_limit = "45 s"

[group.trainers]
policy = "priority"
users = ["nobody"]
environment = { NCCL_DEBUG = "WARN", TORCH_NCCL_ENABLE_MONITORING = "0" }

[group."v1.2"]
)");
  auto loaded = loadMasterConfig(file.path);
  REQUIRE(loaded.ok());
  const MasterConfig& c = loaded.value;
  CHECK(c.listen == std::vector<std::string>{"0.0.0.0:7000", "[::]:7000"});
  CHECK(c.http == "127.0.0.1:6831");
  CHECK_FALSE(c.anyGroup);
  CHECK(c.suspectAfter == 20s);
  CHECK(c.heartbeat == 2s);
  REQUIRE(c.groups.size() == 2);
  CHECK(c.groups.at("trainers").policy == "priority");
  CHECK(c.groups.at("trainers").holdLimit == 45s);  // from [defaults]
  CHECK(c.groups.at("trainers").users.size() == 1);
  CHECK(c.operators == std::vector<uid_t>{0, 1000});
  CHECK(c.groups.at("v1.2").holdLimit == 45s);
}

TEST_CASE("a node's file is read", "[config]") {
  File file(R"(
name = "gpu-7"
master = "[fd00::1]:6830"
backend = "none"
devices = 8
host_budget = "1.5 TiB"
order_delay = "50 ms"
)");
  auto loaded = loadNodeConfig(file.path);
  REQUIRE(loaded.ok());
  CHECK(loaded.value.name == "gpu-7");
  CHECK(loaded.value.devices == 8);
  CHECK(loaded.value.hostBudget == 3ull << 39);
  CHECK(loaded.value.orderDelay == 50ms);
}

TEST_CASE("an empty file is a file with defaults", "[config]") {
  File file("");
  CHECK(loadNodeConfig(file.path).ok());
}

TEST_CASE("FF-I2: an unknown key is named with its place and the nearest known one", "[config]") {
  CHECK(masterErrors("http = \"\"\n\n  hartbeat = \"2 s\"\n") ==
        "x.toml:3:3: unknown key \"hartbeat\"; did you mean \"heartbeat\"?\n");
  CHECK_THAT(masterErrors("[defaults]\nholdlimit = \"2 s\"\n"),
             Contains("x.toml:2:1: unknown key \"holdlimit\" in [defaults]; did you mean "
                      "\"hold_limit\"?"));
  CHECK_THAT(masterErrors("[group.a]\npolicies = 1\n"), Contains("in [group.a]"));
  CHECK_THAT(nodeErrors("colour = 1\n"),
             Contains("unknown key \"colour\"; known here: name, master"));
}

TEST_CASE("FF-I2: a value of the wrong type says what it is and what to write", "[config]") {
  CHECK(
      masterErrors("listen = \"127.0.0.1:1\"\n") ==
      "x.toml:1:10: listen is the string \"127.0.0.1:1\"; write an array of strings, like [\"a\", "
      "\"b\"]\n");
  CHECK_THAT(masterErrors("listen = [1]\n"), Contains("x.toml:1:11: listen is the number 1"));
  CHECK_THAT(masterErrors("any_group = \"yes\"\n"),
             Contains("write true or false, without quotes"));
  CHECK_THAT(masterErrors("http = 6831\n"), Contains("http is the number 6831; write a string"));
  CHECK_THAT(masterErrors("group = 3\n"), Contains("write a table"));
  CHECK_THAT(masterErrors("group = { a = 3 }\n"), Contains("groups are written [group.a]"));
  CHECK_THAT(nodeErrors("devices = \"two\"\n"), Contains("write a whole number from 0 to 1024"));
  CHECK_THAT(masterErrors("[defaults.environment]\nX = 1\n"),
             Contains("x.toml:2:5: X is the number 1"));
}

TEST_CASE("FF-I2: a duration or size without a unit is refused, in quotes or not", "[config]") {
  CHECK(masterErrors("heartbeat = 2\n") ==
        "x.toml:1:13: heartbeat is the number 2; write a duration with its unit, like \"30 s\"\n");
  CHECK_THAT(masterErrors("heartbeat = \"2\"\n"), Contains("heartbeat: \"2\" has no unit"));
  CHECK_THAT(nodeErrors("host_budget = \"2\"\n"), Contains("host_budget: \"2\" has no unit"));
  CHECK_THAT(nodeErrors("host_budget = 2\n"), Contains("like \"512 MiB\""));
}

TEST_CASE("FF-C8: a size is whole bytes, whatever its unit, and no rounding makes it more",
          "[config]") {
  auto bytes = [](const std::string& text) {
    std::uint64_t out = 0;
    std::string why;
    INFO(text << ": " << why);
    REQUIRE(parseBytes(text, out, why));
    return out;
  };
  CHECK(bytes("1 MiB") == 1048576);
  CHECK(bytes("1 MB") == 1000000);
  CHECK(bytes("1 GiB") == 1073741824);
  CHECK(bytes("1 GB") == 1000000000);
  CHECK(bytes("46068 MiB") == 46068ull * 1024 * 1024);
  CHECK(24 * bytes("2000 MiB") > bytes("46068 MiB"));
  // Beyond what a double can tell apart.
  CHECK(bytes("9007199254740993 B") == 9007199254740993ull);
  std::uint64_t out = 0;
  std::string why;
  CHECK_FALSE(parseBytes("18446744073709551616 B", out, why));
  CHECK_FALSE(parseBytes("17179869184 GiB", out, why));
}

TEST_CASE("FF-I2: what is out of range says the range", "[config]") {
  CHECK_THAT(masterErrors("heartbeat = \"0 s\"\n"),
             Contains("heartbeat is \"0 s\", out of range; write a duration from \"1 ms\" to "
                      "\"86400 s\""));
  CHECK_THAT(nodeErrors("connections_per_user = 0\n"), Contains("nobody could connect"));
  CHECK_THAT(masterErrors("sessions_per_user = 0\n"), Contains("x.toml:1:21: sessions_per_user"));
  CHECK_THAT(nodeErrors("devices = -1\n"), Contains("devices is -1, out of range"));
  CHECK_THAT(masterErrors("auth = \"mung\"\n"), Contains("did you mean \"munge\"?"));
  CHECK_THAT(masterErrors("auth = \"kerberos\"\n"), Contains("use one of munge, none"));
  CHECK_THAT(masterErrors("listen = []\n"), Contains("listen is empty"));
  CHECK_THAT(masterErrors("listen = [\"here\"]\n"), Contains("write HOST:PORT"));
  CHECK_THAT(masterErrors("socket = \"run/x\"\n"), Contains("write an absolute path"));
  CHECK_THAT(masterErrors("[group.\"a b\"]\n"), Contains("\"a b\" cannot name a group"));
  CHECK_THAT(nodeErrors("name = \"a b\"\n"), Contains("\"a b\" cannot name a node"));
}

TEST_CASE("a user that is nobody here is named with its place", "[config]") {
  CHECK(masterErrors("operators = [\"root\", \"no-such-user\"]\n") ==
        "x.toml:1:22: operators names \"no-such-user\", and this machine knows no such user; "
        "create it or "
        "write a uid\n");
  CHECK_THAT(masterErrors("[group.g]\nusers = [\"no-such-user\"]\n"),
             Contains("x.toml:2:10: users names"));
}

TEST_CASE("a group sets variables in its jobs, but none that are the Slurm plugin's own",
          "[config]") {
  auto errors = [](const std::string& variable) {
    return masterErrors("[group.g]\nenvironment = { " + variable + " }\n");
  };
  CHECK(errors("NCCL_TIMEOUT = \"7200\", _A1 = \"a b=c\"").empty());
  CHECK_THAT(errors("\"A B\" = \"1\""), Contains("x.toml:2:15: \"A B\" cannot name a variable"));
  CHECK_THAT(errors("\"1A\" = \"1\""), Contains("cannot name a variable"));
  CHECK_THAT(errors("LD_PRELOAD = \"x.so\""), Contains("LD_PRELOAD is set by the Slurm plugin"));
  CHECK_THAT(errors("TIMESLICE_JOB = \"x\""), Contains("TIMESLICE_JOB is set by"));
  CHECK_THAT(errors("A = \"two\\nlines\""), Contains("the value of A has more than one line"));
}

TEST_CASE("what this release does not have is refused", "[config]") {
  CHECK_THAT(nodeErrors("silent_limit = \"5 min\"\n"),
             Contains("x.toml:1:16: silent_limit is not available"));
  CHECK(nodeErrors("silent_limit = \"0 s\"\n").empty());
}

TEST_CASE("values that contradict each other are named", "[config]") {
  CHECK_THAT(masterErrors("heartbeat = \"10 s\"\n"), Contains("x.toml:1:13: suspect_after is not"));
  CHECK_THAT(masterErrors("dead_after = \"5 s\"\n"), Contains("dead_after is not longer"));
  CHECK_THAT(masterErrors("auth = \"none\"\nlisten = [\"0.0.0.0:6830\"]\n"),
             Contains("x.toml:1:8: auth is \"none\" while listen has \"0.0.0.0:6830\""));
  CHECK(masterErrors("auth = \"none\"\n").empty());
  CHECK(masterErrors("auth = \"none\"\nauth_none_anywhere = true\nlisten = [\"0.0.0.0:1\"]\n")
            .empty());
}

TEST_CASE("every error of a file is told at once, in the order of the lines", "[config]") {
  CHECK(masterErrors("hartbeat = 1\nhttp = 1\n[defaults]\npolicy = \"fast\"\n") ==
        "x.toml:1:1: unknown key \"hartbeat\"; did you mean \"heartbeat\"?\n"
        "x.toml:2:8: http is the number 1; write a string in quotes\n"
        "x.toml:4:10: policy is \"fast\"; use one of fifo, priority\n");
}

TEST_CASE("FF-I2: a duplicate and a syntax error know their place", "[config]") {
  CHECK_THAT(masterErrors("http = \"\"\nhttp = \"\"\n"), Contains("x.toml:2:"));
  CHECK_THAT(masterErrors("http = \"\"\nhttp = \"\"\n"), Contains("remove one of the two"));
  CHECK_THAT(masterErrors("[group.a]\n[group.a]\n"), Contains("remove one of the two"));
  CHECK_THAT(masterErrors("listen = [\n"), Contains("see https://toml.io"));
}

TEST_CASE("FF-I2: a file that is missing and one that cannot be read are told apart", "[config]") {
  test::TempDir dir;
  auto missing = loadMasterConfig(dir / "none.toml");
  REQUIRE(missing.errors.size() == 1);
  CHECK_THAT(missing.errors[0].text, Contains("none.toml: does not exist; create it"));
  std::filesystem::create_directory(dir / "folder");
  auto folder = loadMasterConfig(dir / "folder");
  REQUIRE(folder.errors.size() == 1);
  CHECK_THAT(folder.errors[0].text, Contains("folder: cannot be read: Is a directory"));
}
