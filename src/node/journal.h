// What a node must not forget when it is killed: named values in an append-only file on tmpfs.
#pragma once

#include <kj/array.h>
#include <kj/io.h>

#include <functional>
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
  virtual std::string place() const = 0;  // for a person

  // Those whose names begin with `prefix`; `rest` is what follows it. What `use` throws becomes a
  // sentence that names the record and says what to do.
  using Use = std::function<void(const std::string& rest, const std::string& value)>;
  void each(const std::string& prefix, const Use& use) const;

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
  std::string place() const override { return "records in memory"; }

private:
  std::map<std::string, std::string> values_;
};

// A step is a copy into the mapped file, no system call and no fsync: it has to outlive the
// process, not the machine. A step cut short is dropped when the file is read again. The file's
// room is allocated ahead, so a full disk is an error of the call that needs more room and never a
// SIGBUS. Only one process may have a directory's journal open. Throws kj::Exception.
class Journal final : public Records {
public:
  explicit Journal(
      std::string directory);  // made if it is not there; throws when it cannot be used
  void keep(const std::vector<Change>& changes) override;
  const std::map<std::string, std::string>& all() const override { return values_.all(); }
  std::string place() const override { return "journal " + directory_ + "/journal"; }

private:
  void load();
  Change decoded(std::string_view line) const;
  void append(std::string_view text);
  void compact(std::size_t roomFor);

  std::string directory_;
  kj::AutoCloseFd lock_;
  kj::Array<char> room_;  // the mapped file; what is not used is zero
  std::size_t used_ = 0;
  MemoryRecords values_;
};

// Texts as one line: tab, newline, zero and percent are written as %09, %0a, %00, %25.
std::string escaped(std::string_view text);
std::string unescaped(std::string_view text);

}  // namespace ts::node
