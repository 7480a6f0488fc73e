// What a node must not forget when it is killed: named values in an append-only file on tmpfs.
#pragma once

#include <kj/io.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ts::node {

// Where values are kept by name. One call is one step: all of it is kept, or none.
class Records {
public:
  struct Change {
    std::string name;
    std::string value;
    bool erase = false;
  };
  virtual ~Records() noexcept(false) {}
  virtual void keep(const std::vector<Change>& changes) = 0;
  virtual const std::map<std::string, std::string>& all() const = 0;

  void put(std::string name, std::string value) {
    keep({{std::move(name), std::move(value), false}});
  }
  void erase(std::string name) { keep({{std::move(name), "", true}}); }
};

// In memory, for tests and for a node that runs alone.
class MemoryRecords final : public Records {
public:
  void keep(const std::vector<Change>& changes) override;
  const std::map<std::string, std::string>& all() const override { return values_; }

private:
  std::map<std::string, std::string> values_;
};

// One write(2) per step, no fsync: it has to outlive the process, not the machine. A step cut short is
// dropped when the file is read again. Only one process may have a directory's journal open.
class Journal final : public Records {
public:
  explicit Journal(std::string directory);  // made if it is not there; throws when it cannot be used
  void keep(const std::vector<Change>& changes) override;
  const std::map<std::string, std::string>& all() const override { return values_.all(); }

private:
  void load();
  void append(const std::string& text);
  void compact();

  std::string directory_;
  kj::AutoCloseFd lock_;
  kj::AutoCloseFd file_;
  std::size_t size_ = 0;      // of the file
  std::size_t atCompact_ = 0;  // its size after the last compaction
  MemoryRecords values_;
};

// Texts as one line: tab, newline and percent are written as %09, %0a, %25.
std::string escaped(std::string_view text);
std::string unescaped(std::string_view text);

}  // namespace ts::node
