// What happened, for `tsctl events`: the newest lines in memory, all of them in the store,
// followers.
#pragma once

#include <kj/async.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reactor/workers.h"
#include "store/store.h"
#include "timeslice.capnp.h"

namespace ts {

class Follower;

// Nothing here waits for a disk: lines are kept in memory and stored by a worker, many at a time.
class History {
public:
  static constexpr std::size_t kInMemory = 10'000;

  History(Store& store, Workers& workers, std::size_t inMemory = kInMemory);

  void add(const std::string& line);
  // Hands what is not stored yet to a worker. Resolves when it is on its way to the disk, or lost
  // to an error, which `lost()` counts and `takeTrouble()` tells.
  kj::Promise<void> store();
  // At the end of the process: waits for the disk.
  void storeNow();
  std::uint64_t lost() const { return lost_; }
  std::string takeTrouble() {
    return std::exchange(untoldTrouble_, {});
  }  // once until it works again

  using Filter = std::function<bool(const std::string& line)>;
  // Past lines from `sinceUs` on, then new ones as they come. Dropping the handle ends it. A reader
  // that is further behind than what is in memory gets a last line that says so, and no more.
  kj::Own<wire::OperatorSession::Handle::Server> follow(std::uint64_t sinceUs,
                                                        wire::EventSink::Client sink,
                                                        Filter filter);

private:
  friend class Follower;
  // Lines have unique, growing times: the time is their number.
  std::uint64_t begin() const { return lines_.empty() ? lastUs_ + 1 : lines_.front().unixUs; }
  const EventRow* next(std::uint64_t fromUs) const;
  kj::Promise<std::vector<EventRow>> stored(std::uint64_t fromUs, std::size_t limit);

  Store& store_;
  Workers& workers_;
  std::size_t limit_;
  std::deque<EventRow> lines_;
  std::vector<EventRow> unstored_;
  std::uint64_t lastUs_;
  std::uint64_t evictedUs_ = 0;  // the newest line that memory has no longer
  std::uint64_t lost_ = 0;
  bool storing_ = false;
  bool failing_ = false;
  std::string untoldTrouble_;
  std::set<Follower*> followers_;
};

}  // namespace ts
