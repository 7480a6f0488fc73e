#include "store/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

namespace ts {
namespace {

// SQLite makes a file that everybody reads, and its companions like the file itself. What it holds
// are the events of all users. Whether the path is any good, SQLite says.
void keepPrivate(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

}  // namespace

Sqlite::Sqlite(std::string path) : path_(std::move(path)) {
  if (!path_.starts_with(':')) keepPrivate(path_);  // ":memory:"
  sqlite3* db = nullptr;
  int rc =
      sqlite3_open_v2(path_.c_str(), &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  db_.reset(db);
  if (rc != SQLITE_OK) fail("cannot be opened");
}

void Sqlite::run(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
}

void Sqlite::fail(const std::string& what) const {
  int code = sqlite3_errcode(db_.get());
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    throw std::runtime_error(
        "database " + path_ +
        " is used by another tsmasterd; stop it, or set `database` to another path");
  throw std::runtime_error("database " + path_ + ": " + what + ": " + sqlite3_errmsg(db_.get()));
}

Statement::Statement(Sqlite& db, const char* sql) : db_(db) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db.handle(), sql, -1, &statement, nullptr) != SQLITE_OK) db.fail(sql);
  statement_.reset(statement);
}

Statement& Statement::bind(int place, std::uint64_t value) {
  if (sqlite3_bind_int64(statement_.get(), place, sqlite3_int64(value)) != SQLITE_OK)
    db_.fail("a number for place " + std::to_string(place) + " of " +
             sqlite3_sql(statement_.get()));
  return *this;
}

Statement& Statement::bind(int place, std::string_view value) {
  int rc = sqlite3_bind_text64(statement_.get(), place, value.data(), value.size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  if (rc != SQLITE_OK)
    db_.fail("a text for place " + std::to_string(place) + " of " + sqlite3_sql(statement_.get()));
  return *this;
}

bool Statement::step() {
  int rc = sqlite3_step(statement_.get());
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
    std::string sql = sqlite3_sql(statement_.get());
    reset();
    db_.fail(sql);
  }
  return rc == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

std::uint64_t Statement::number(int column) const {
  return std::uint64_t(sqlite3_column_int64(statement_.get(), column));
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_.get(), column);
  auto size = std::size_t(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? "" : std::string(reinterpret_cast<const char*>(data), size);
}

}  // namespace ts
