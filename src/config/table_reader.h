// One TOML table read field by field: typed values in, errors that know their place and way out.
#pragma once

#include <toml++/toml.h>

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace ts {

// All errors of one file; in the end sorted by place.
class ErrorList {
public:
  explicit ErrorList(std::string path) : path_(std::move(path)) {}
  void add(const toml::source_region& where, const std::string& what);
  void add(const std::string& what);  // about the file as a whole
  std::vector<ConfigError> take();

private:
  struct Entry {
    toml::source_position where;
    std::string text;
  };
  std::string path_;
  std::vector<Entry> entries_;
};

// Call one method per key that may be there, then finish(): what nobody asked for is unknown.
class TableReader {
public:
  // `name` is how the table is called in errors: "" for the top, else "[defaults]".
  TableReader(ErrorList& errors, const toml::table& table, std::string name);

  void text(std::string_view key, std::string& out);
  void choice(std::string_view key, std::string& out, std::initializer_list<std::string_view> of);
  void flag(std::string_view key, bool& out);
  void count(std::string_view key, std::uint32_t& out, std::uint32_t max);
  void duration(std::string_view key, microseconds& out, microseconds min, microseconds max);
  void bytes(std::string_view key, std::uint64_t& out);
  void texts(std::string_view key, std::vector<std::string>& out);
  void users(std::string_view key, std::vector<uid_t>& out);  // by name or number; may block
  void textMap(std::string_view key, std::map<std::string, std::string>& out);
  const toml::table* table(std::string_view key);

  bool has(std::string_view key) const { return table_.contains(key); }
  // An error about a key that is there, or else about the table.
  void fail(std::string_view key, const std::string& what);
  void finish();

private:
  const toml::node* find(std::string_view key);
  void wrongType(std::string_view key, const toml::node& node, const std::string& wanted);

  ErrorList& errors_;
  const toml::table& table_;
  std::string name_;
  std::vector<std::string> known_;
};

}  // namespace ts
