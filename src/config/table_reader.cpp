#include "config/table_reader.h"

#include <algorithm>

#include "config/nearest.h"
#include "config/users.h"

namespace ts {
namespace {

std::string quote(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

template <class Range>
std::string joined(const Range& words) {
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : ", ") + std::string(word);
  return all;
}

std::string nameOf(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "the string " + quote(node.as_string()->get());
    case toml::node_type::integer:
      return "the number " + std::to_string(node.as_integer()->get());
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "the truth value true" : "the truth value false";
    default:
      return "a date or time";
  }
}

// In whole units where that is possible: 90 s, 1500 ms.
std::string show(microseconds time) {
  using namespace std::chrono;
  if (time % seconds(1) == microseconds(0)) return std::to_string(time / seconds(1)) + " s";
  if (time % milliseconds(1) == microseconds(0)) {
    return std::to_string(time / milliseconds(1)) + " ms";
  }
  return std::to_string(time.count()) + " us";
}

}  // namespace

void ErrorList::add(const toml::source_region& where, const std::string& what) {
  std::string place = path_;
  if (where.begin) {
    place += ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
  }
  entries_.push_back({where.begin, place + ": " + what});
}

void ErrorList::add(const std::string& what) {
  entries_.push_back({{}, path_ + ": " + what});
}

std::vector<ConfigError> ErrorList::take() {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.where < b.where; });
  std::vector<ConfigError> all;
  for (Entry& entry : entries_) all.push_back({std::move(entry.text)});
  entries_.clear();
  return all;
}

TableReader::TableReader(ErrorList& errors, const toml::table& table, std::string name)
    : errors_(errors), table_(table), name_(std::move(name)) {}

const toml::node* TableReader::find(std::string_view key) {
  known_.emplace_back(key);
  return table_.get(key);
}

void TableReader::wrongType(std::string_view key, const toml::node& node,
                            const std::string& wanted) {
  errors_.add(node.source(), std::string(key) + " is " + nameOf(node) + "; write " + wanted);
}

void TableReader::fail(std::string_view key, const std::string& what) {
  const toml::node* node = table_.get(key);
  errors_.add(node != nullptr ? node->source() : table_.source(), what);
}

void TableReader::text(std::string_view key, std::string& out) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_string()) return wrongType(key, *node, "a string in quotes");
  out = node->as_string()->get();
}

void TableReader::choice(std::string_view key, std::string& out,
                         std::initializer_list<std::string_view> of) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_string()) return wrongType(key, *node, "one of " + joined(of) + ", in quotes");
  const std::string& text = node->as_string()->get();
  if (std::find(of.begin(), of.end(), text) == of.end()) {
    std::string hint = nearest(text, {of.begin(), of.end()});
    return errors_.add(node->source(), std::string(key) + " is " + quote(text) + "; " +
                                           (hint.empty() ? "use one of " + joined(of)
                                                         : "did you mean " + quote(hint) + "?"));
  }
  out = text;
}

void TableReader::flag(std::string_view key, bool& out) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_boolean()) return wrongType(key, *node, "true or false, without quotes");
  out = node->as_boolean()->get();
}

void TableReader::count(std::string_view key, std::uint32_t& out, std::uint32_t max) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  std::string range = "a whole number from 0 to " + std::to_string(max);
  if (!node->is_integer()) return wrongType(key, *node, range);
  std::int64_t value = node->as_integer()->get();
  if (value < 0 || value > max) {
    return errors_.add(node->source(), std::string(key) + " is " + std::to_string(value) +
                                           ", out of range; write " + range);
  }
  out = std::uint32_t(value);
}

void TableReader::duration(std::string_view key, microseconds& out, microseconds min,
                           microseconds max) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_string()) return wrongType(key, *node, "a duration with its unit, like \"30 s\"");
  microseconds value{0};
  std::string why;
  if (!parseDuration(node->as_string()->get(), value, why)) {
    return errors_.add(node->source(), std::string(key) + ": " + why);
  }
  if (value < min || value > max) {
    return errors_.add(node->source(), std::string(key) + " is " + quote(node->as_string()->get()) +
                                           ", out of range; write a duration from \"" + show(min) +
                                           "\" to \"" + show(max) + "\"");
  }
  out = value;
}

void TableReader::bytes(std::string_view key, std::uint64_t& out) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_string()) return wrongType(key, *node, "a size with its unit, like \"512 MiB\"");
  std::uint64_t value = 0;
  std::string why;
  if (!parseBytes(node->as_string()->get(), value, why)) {
    return errors_.add(node->source(), std::string(key) + ": " + why);
  }
  out = value;
}

void TableReader::texts(std::string_view key, std::vector<std::string>& out) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  if (!node->is_array()) return wrongType(key, *node, "an array of strings, like [\"a\", \"b\"]");
  std::vector<std::string> all;
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) return wrongType(key, item, "strings in quotes inside the array");
    all.push_back(item.as_string()->get());
  }
  out = std::move(all);
}

void TableReader::users(std::string_view key, std::vector<uid_t>& out) {
  std::vector<std::string> names;
  texts(key, names);
  const toml::node* node = table_.get(key);
  if (node == nullptr || !node->is_array()) return;
  out.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (auto uid = uidNamed(names[i])) {
      out.push_back(*uid);
      continue;
    }
    errors_.add(node->as_array()->get(i)->source(),
                std::string(key) + " names " + quote(names[i]) +
                    ", and this machine knows no such user; create it or write a uid");
  }
}

void TableReader::textMap(std::string_view key, std::map<std::string, std::string>& out) {
  const toml::table* entries = table(key);
  if (entries == nullptr) return;
  for (const auto& [name, value] : *entries) {
    if (value.is_string()) {
      out[std::string(name.str())] = value.as_string()->get();
    } else {
      wrongType(name.str(), value, "a string in quotes");
    }
  }
}

const toml::table* TableReader::table(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return nullptr;
  if (node->is_table()) return node->as_table();
  wrongType(key, *node, "a table: a line [" + std::string(key) + "] and its keys below");
  return nullptr;
}

void TableReader::finish() {
  for (const auto& [key, value] : table_) {
    std::string word(key.str());
    if (std::find(known_.begin(), known_.end(), word) != known_.end()) continue;
    std::string hint = nearest(word, known_);
    errors_.add(
        key.source(),
        "unknown key " + quote(word) + (name_.empty() ? "" : " in " + name_) + "; " +
            (hint.empty() ? "known here: " + joined(known_) : "did you mean " + quote(hint) + "?"));
  }
}

}  // namespace ts
