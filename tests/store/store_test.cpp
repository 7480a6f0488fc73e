#include "store/store.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

using namespace ts;

namespace {

struct Directory {
  std::string path;
  Directory() {
    char name[] = "/tmp/timeslice-store-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file() const { return path + "/master.db"; }
};

std::vector<std::string> texts(const std::vector<EventRow>& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(row.text);
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("FF-F1: what the store writes is for its user alone", "[store]") {
  Directory dir;
  Store store(dir.file());
  store.append({{1, "grant"}});
  for (const auto& file : std::filesystem::directory_iterator(dir.path)) {
    INFO(file.path());
    using std::filesystem::perms;
    CHECK((file.status().permissions() & (perms::group_all | perms::others_all)) == perms::none);
  }
}

TEST_CASE("a new store remembers no generation", "[store]") {
  CHECK(Store(":memory:").lastGeneration() == 0);
}

TEST_CASE("a generation outlives the store that took it", "[store]") {
  Directory dir;
  Store(dir.file()).setGeneration(7);
  CHECK(Store(dir.file()).lastGeneration() == 7);
}

TEST_CASE("a second master cannot open the same file", "[store]") {
  Directory dir;
  Store first(dir.file());
  first.setGeneration(1);
  CHECK_THROWS_WITH(
      Store(dir.file()),
      Catch::Contains(dir.file()) && Catch::Contains("is used by another tsmasterd; stop it"));
}

TEST_CASE("a path that cannot be opened is named", "[store]") {
  CHECK_THROWS_WITH(Store("/nowhere/at/all.db"), Catch::Contains("/nowhere/at/all.db"));
}

TEST_CASE("a folder that is missing is to be made, by whom is said", "[store]") {
  CHECK_THROWS_WITH(Store("/nowhere/at/all.db"),
                    Catch::Contains("make the folder /nowhere/at, owned by the user of tsmasterd"));
  CHECK(missingFolder(":memory:").empty());
  CHECK(missingFolder("/tmp/any.db").empty());
}

TEST_CASE("a file that is no database is named", "[store]") {
  CHECK_THROWS_WITH(Store("/etc/passwd"), Catch::Contains("/etc/passwd"));
}

TEST_CASE("a standing order outlives the store, until it is taken back", "[store]") {
  Directory dir;
  {
    Store store(dir.file());
    store.keep({"paused", "rl"}, true);
    store.keep({"paused", "rl"}, true);
    store.keep({"drained", "n1"}, true);
    store.keep({"drained", "n1"}, false);
  }
  auto orders = Store(dir.file()).standingOrders();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].what == "paused");
  CHECK(orders[0].name == "rl");
}

TEST_CASE("events come back in order, from the asked time on", "[store]") {
  Store store(":memory:");
  store.append({{10, "grant job=a"}, {20, "yield job=a"}, {30, "grant job=b"}});
  CHECK(texts(store.eventsSince(20, 100)) == Texts{"yield job=a", "grant job=b"});
  CHECK(texts(store.eventsSince(0, 2)) == Texts{"grant job=a", "yield job=a"});
  CHECK(store.eventsSince(31, 100).empty());
}

TEST_CASE("only the newest events are kept", "[store]") {
  Store store(":memory:");
  store.setKeepEvents(2);
  for (std::uint64_t i = 1; i <= 5; ++i) store.append({{i, "event " + std::to_string(i)}});
  CHECK(texts(store.eventsSince(0, 100)) == Texts{"event 4", "event 5"});
}

TEST_CASE("a node is remembered once, as last seen", "[store]") {
  Store store(":memory:");
  store.remember({"n1", "10.0.0.1:1", 5});
  store.remember({"n1", "10.0.0.2:2", 6});
  auto nodes = store.nodes();
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].address == "10.0.0.2:2");
  CHECK(nodes[0].lastSeenUs == 6);
}
