// Which orders a node obeys: each once, none that is older than the last. Pure.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/journal.h"
#include "wire/translate.h"

namespace ts::node {

// Orders by job. What began and how it ended is kept, so that a repeated order is answered from the
// record, also by a daemon that was killed in between. An order of which nobody saw the end is
// obeyed anew when it is repeated: each is a step towards a state, and begins with what it finds.
class Fence {
public:
  // Reads what an earlier life of the daemon has kept.
  explicit Fence(Records& records);

  struct Decision {
    enum class Kind { Obey, Repeated, Running, Stale };
    Kind kind = Kind::Obey;
    Outcome outcome;     // Repeated: how it ended, without its members
    OperationId last{};  // Stale: the highest id of the job
  };
  // `Obey` has recorded the intent.
  Decision admit(const JobName& job, OperationId operation);
  // `ended`: the slice that the order was about has ended with it.
  void finished(const JobName& job, OperationId operation, const Outcome& outcome,
                std::optional<Epoch> ended = {});
  Decision look(const JobName& job, OperationId operation) const;  // admits nothing
  // An order that came later has ended the slice. A grant of which nobody saw the end, because the
  // daemon was killed under it, is not to be obeyed anew then.
  bool hasEnded(const JobName& job, OperationId operation, const Epoch& slice) const;

  // Ids grow within one generation of the master: a new one starts anew.
  void newGeneration();
  void forget(const JobName& job);

private:
  struct Entry {
    OperationId operation{};
    std::optional<Outcome> outcome;  // without its members; nothing: it runs
    std::optional<Epoch> ended;      // the slice that ended with it
    bool cut = false;                // it ran in an earlier life of the daemon
  };
  using Entries = std::deque<Entry>;              // by growing id
  static constexpr std::size_t kRemembered = 64;  // per job; what runs is never dropped

  // Nearly always the last is asked for, or one that is newer.
  template <class SomeEntries>
  static auto* find(SomeEntries& entries, OperationId operation) {
    auto* last = entries.empty() ? nullptr : &entries.back();
    if (!last || last->operation <= operation)
      return last && last->operation == operation ? last : nullptr;
    auto at = std::ranges::lower_bound(entries, operation, {}, &Entry::operation);
    return at->operation == operation ? &*at : nullptr;
  }

  void load();
  std::vector<Records::Change> finishing(const JobName& job, OperationId operation,
                                         const Outcome& outcome, std::optional<Epoch> ended);
  void drop(const JobName& job, std::vector<Records::Change>& changes);

  Records& records_;
  std::map<JobName, Entries> orders_;
};

// An outcome as one text, without its members: those are read anew.
std::string encode(const Outcome& outcome);
Outcome decodeOutcome(const std::string& text);

}  // namespace ts::node
