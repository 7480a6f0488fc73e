// What a node must not forget when it is killed: named values in an append-only file on tmpfs.
#pragma once

#include <kj/array.h>
#include <kj/io.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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
  using Values = std::unordered_map<std::string, std::string>;  // by name
  virtual ~Records() noexcept(false) {}
  // Takes the texts, unless it throws.
  virtual void keep(std::span<Change> changes) = 0;
  virtual const Values& all() const = 0;
  virtual std::string place() const = 0;  // for a person
  // Why nothing new should be begun, or nothing: what runs can still be written down to its end.
  virtual std::string whyFull() { return ""; }

  // Those whose names begin with `prefix`, by name; `rest` is what follows it. What `use` throws
  // becomes a sentence that names the record and says what to do.
  using Use = std::function<void(const std::string& rest, const std::string& value)>;
  void each(const std::string& prefix, const Use& use) const;

  void put(std::string name, std::string value) {
    Change one{std::move(name), std::move(value), false};
    keep({&one, 1});
  }
  void erase(std::string name) {
    Change one{std::move(name), "", true};
    keep({&one, 1});
  }
};

// In memory, for tests and for a node that runs alone.
class MemoryRecords final : public Records {
public:
  void keep(std::span<Change> changes) override;
  const Values& all() const override { return values_; }
  std::string place() const override { return "records in memory"; }

private:
  Values values_;
};

// A step is a copy into the mapped file, no system call and no fsync: it has to outlive the
// process, not the machine. A step that was cut short is dropped when the file is read again; a
// file that is not as it was written is noticed by its length and its checksums, and refused. There
// are two files of which one is spare, and their room is allocated ahead: on a full disk the old
// goes on being replaced by the new, and only what grows is refused. Only one process may have a
// directory's journal open. Throws kj::Exception, of type OVERLOADED where there is no room.
class Journal final : public Records {
public:
  explicit Journal(
      std::string directory);  // made if it is not there; throws when it cannot be used
  void keep(std::span<Change> changes) override;
  const Values& all() const override { return values_.all(); }
  std::string place() const override { return "journal " + path(); }
  std::string whyFull() override;

private:
  std::string path() const { return directory_ + "/journal"; }
  std::string sparePath() const { return directory_ + "/journal.spare"; }
  void load();
  void read(std::string_view steps);
  [[noreturn]] void damaged(const std::string& what) const;
  Change decoded(std::string_view line) const;
  void append();
  void compact(std::size_t roomFor);
  void makeSpare(std::size_t wanted, std::size_t least);
  void exchange();
  std::size_t left() const { return room_.size() - used_; }

  std::string directory_;
  kj::AutoCloseFd lock_;
  kj::Array<char> room_, spare_;  // mapped: a header, steps, and what is of no meaning
  std::size_t used_ = 0;
  std::uint32_t sum_ = 0;  // of all steps
  std::string step_;       // being written: its room is used again
  std::string trouble_;    // why there is less room than there should be
  MemoryRecords values_;
};

// Texts as one line: tab, newline, zero and percent are written as %09, %0a, %00, %25.
std::string escaped(std::string_view text);
std::string unescaped(std::string_view text);

}  // namespace ts::node
