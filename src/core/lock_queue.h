// Who is next: waiting jobs in the policy's order.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <set>

#include "cluster.h"
#include "ids.h"

namespace ts {

struct Job;

// A place in the queue. It does not change while a job waits, not even under ageing: who started to
// wait `ageing` earlier is as good as who has one more step of priority, at every later moment.
struct Place {
  static constexpr std::int64_t kPinned = std::numeric_limits<std::int64_t>::min();

  std::int64_t rank = 0;
  std::uint64_t ticket = 0;
  JobId job{};
  auto operator<=>(const Place&) const = default;
};

Place placeFor(const GroupConfig& config, JobId job, int priority, std::uint64_t ticket,
               Instant since);

// Jobs in the order of their places; a job stands in it at most once.
class LockQueue {
public:
  struct Entry {
    Place place;
    Job* job;
    bool operator<(const Entry& other) const { return place < other.place; }
  };

  void insert(const Place& place, Job& job) { entries_.insert({place, &job}); }
  void erase(const Place& place) { entries_.erase({place, nullptr}); }
  Job* front() const { return entries_.empty() ? nullptr : entries_.begin()->job; }
  // The first that is not `job`.
  Job* frontBeside(const Job& job) const;
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

private:
  std::set<Entry> entries_;
};

}  // namespace ts
