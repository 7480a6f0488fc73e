#include "store/store.h"

#include <filesystem>
#include <mutex>
#include <stdexcept>

#include "store/sqlite.h"

namespace ts {
namespace {

// An exclusive lock: two masters on one file would take the same generation.
constexpr const char* kSetUp =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS nodes (name TEXT PRIMARY KEY, address TEXT NOT NULL,"
    "  last_seen_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS standing (what TEXT, name TEXT, PRIMARY KEY (what, name))"
    "  WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, unix_us INTEGER NOT NULL,"
    "  text TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS events_by_time ON events (unix_us);";

constexpr std::uint64_t kKeepEvents = 1'000'000;

const std::string& inFolder(const std::string& path) {
  std::string why = missingFolder(path);
  if (!why.empty()) throw std::runtime_error(why);
  return path;
}

// Before anything is prepared: statements need the tables.
struct Opened {
  Sqlite db;
  explicit Opened(const std::string& path) : db(inFolder(path)) { db.run(kSetUp); }
};

}  // namespace

std::string missingFolder(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return "";
  return "database " + path + ": there is no folder " + folder.string() + "; make the folder " +
         folder.string() + ", owned by the user of tsmasterd";
}

struct Store::State : Opened {
  explicit State(const std::string& path) : Opened(path) {}

  std::mutex mutex;
  std::uint64_t keepEvents = kKeepEvents;
  Statement readMeta{db, "SELECT value FROM meta WHERE key = ?"};
  Statement writeMeta{db, "INSERT OR REPLACE INTO meta VALUES (?, ?)"};
  Statement writeNode{db, "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)"};
  Statement readNodes{db, "SELECT name, address, last_seen_us FROM nodes ORDER BY name"};
  Statement writeStanding{db, "INSERT OR REPLACE INTO standing VALUES (?, ?)"};
  Statement dropStanding{db, "DELETE FROM standing WHERE what = ? AND name = ?"};
  Statement readStanding{db, "SELECT what, name FROM standing ORDER BY what, name"};
  Statement writeEvent{db, "INSERT INTO events (unix_us, text) VALUES (?, ?)"};
  Statement dropEvents{db, "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?"};
  Statement readEvents{db,
                       "SELECT unix_us, text FROM events WHERE unix_us >= ? ORDER BY unix_us, id"
                       " LIMIT ?"};
};

Store::Store(const std::string& path) : state_(std::make_unique<State>(path)) {}
Store::~Store() = default;

std::uint32_t Store::lastGeneration() {
  std::lock_guard lock(state_->mutex);
  auto& read = state_->readMeta.bind(1, "generation");
  auto number = read.step() ? std::uint32_t(read.number(0)) : 0;
  read.reset();
  return number;
}

void Store::setGeneration(std::uint32_t number) {
  std::lock_guard lock(state_->mutex);
  state_->db.run("PRAGMA synchronous = FULL");
  state_->writeMeta.bind(1, "generation").bind(2, std::uint64_t(number)).run();
  state_->db.run("PRAGMA synchronous = NORMAL");
}

void Store::remember(const NodeRow& node) {
  std::lock_guard lock(state_->mutex);
  state_->writeNode.bind(1, node.name).bind(2, node.address).bind(3, node.lastSeenUs).run();
}

std::vector<NodeRow> Store::nodes() {
  std::lock_guard lock(state_->mutex);
  std::vector<NodeRow> rows;
  auto& read = state_->readNodes;
  while (read.step()) rows.push_back({read.text(0), read.text(1), read.number(2)});
  read.reset();
  return rows;
}

void Store::keep(const StandingOrder& order, bool on) {
  std::lock_guard lock(state_->mutex);
  auto& change = on ? state_->writeStanding : state_->dropStanding;
  change.bind(1, order.what).bind(2, order.name).run();
}

std::vector<StandingOrder> Store::standingOrders() {
  std::lock_guard lock(state_->mutex);
  std::vector<StandingOrder> rows;
  auto& read = state_->readStanding;
  while (read.step()) rows.push_back({read.text(0), read.text(1)});
  read.reset();
  return rows;
}

void Store::append(const std::vector<EventRow>& events) {
  std::lock_guard lock(state_->mutex);
  Transaction transaction(state_->db);
  for (const EventRow& event : events)
    state_->writeEvent.bind(1, event.unixUs).bind(2, event.text).run();
  state_->dropEvents.bind(1, state_->keepEvents).run();
  transaction.commit();
}

std::vector<EventRow> Store::eventsSince(std::uint64_t sinceUs, std::size_t limit) {
  std::lock_guard lock(state_->mutex);
  std::vector<EventRow> rows;
  auto& read = state_->readEvents.bind(1, sinceUs).bind(2, std::uint64_t(limit));
  while (read.step()) rows.push_back({read.number(0), read.text(1)});
  read.reset();
  return rows;
}

void Store::setKeepEvents(std::uint64_t count) {
  std::lock_guard lock(state_->mutex);
  state_->keepEvents = count;
}

}  // namespace ts
