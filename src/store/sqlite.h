// SQLite with errors that throw and statements that reset themselves.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ts {

class Sqlite {
public:
  explicit Sqlite(std::string path);

  void run(const char* sql);  // one or more statements without values
  sqlite3* handle() const { return db_.get(); }
  [[noreturn]] void fail(const std::string& what) const;

private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

// A prepared statement. Values are bound from 1 on; the text must live until the next reset.
class Statement {
public:
  Statement(Sqlite& db, const char* sql);

  Statement& bind(int place, std::uint64_t value);
  Statement& bind(int place, std::string_view value);
  bool step();  // true: there is a row
  void run();   // to the end, then ready for new values
  void reset() { sqlite3_reset(statement_.get()); }

  std::uint64_t number(int column) const;
  std::string text(int column) const;

private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  Sqlite& db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Commits when told to, else rolls back.
class Transaction {
public:
  explicit Transaction(Sqlite& db) : db_(db) { db_.run("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!committed_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    db_.run("COMMIT");
    committed_ = true;
  }

private:
  Sqlite& db_;
  bool committed_ = false;
};

}  // namespace ts
