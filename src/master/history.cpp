#include "master/history.h"

#include <algorithm>
#include <memory>

#include "master/alarm.h"
#include "master/follower.h"
#include "wire/greet.h"

namespace ts {
namespace {

// What a stopped disk may keep in memory, in lines.
constexpr std::size_t kMaxUnstored = 100'000;
// Each reads the store on a worker and costs memory: anybody may connect.
constexpr std::size_t kMostFollowers = 256;

}  // namespace

// What is older than this object is in the store, if anywhere.
History::History(Store& store, Workers& workers, std::size_t inMemory)
    : store_(store), workers_(workers), limit_(inMemory), lastUs_(unixNowUs()) {}

void History::add(const std::string& line) {
  lastUs_ = std::max(unixNowUs(), lastUs_ + 1);
  lines_.push_back({lastUs_, line});
  unstored_.push_back({lastUs_, line});
  if (lines_.size() > limit_) {
    evictedUs_ = lines_.front().unixUs;
    lines_.pop_front();
  }
  if (unstored_.size() > kMaxUnstored) {
    lost_ += unstored_.size();
    unstored_.clear();
  }
  for (Follower* follower : followers_) follower->wake();
}

kj::Promise<void> History::store() {
  if (unstored_.empty() || storing_) return kj::READY_NOW;
  storing_ = true;
  auto rows = std::make_shared<std::vector<EventRow>>(std::move(unstored_));
  unstored_.clear();
  return workers_
      .call<int>([&store = store_, rows] {  // this may be gone before the worker comes to it
        store.append(*rows);
        return 0;
      })
      .then([this](int) { storing_ = failing_ = false; },
            [this, rows](kj::Exception&& e) {
              storing_ = false;
              lost_ += rows->size();
              if (!std::exchange(failing_, true)) untoldTrouble_ = sentenceOf(e);
            });
}

void History::storeNow() {
  if (!unstored_.empty()) store_.append(unstored_);
  unstored_.clear();
}

const EventRow* History::next(std::uint64_t fromUs) const {
  auto it = std::ranges::lower_bound(lines_, fromUs, {}, &EventRow::unixUs);
  return it == lines_.end() ? nullptr : &*it;
}

kj::Promise<std::vector<EventRow>> History::stored(std::uint64_t fromUs, std::size_t limit) {
  return workers_.call<std::vector<EventRow>>(
      [&store = store_, fromUs, limit] { return store.eventsSince(fromUs, limit); });
}

kj::Own<wire::OperatorSession::Handle::Server> History::follow(std::uint64_t sinceUs,
                                                               wire::EventSink::Client sink,
                                                               Filter filter) {
  if (followers_.size() >= kMostFollowers)
    kj::throwFatalException(
        sentence(std::to_string(kMostFollowers) +
                 " readers follow the events already; end one, or read less often"));
  return kj::heap<Follower>(*this, sinceUs, kj::mv(sink), std::move(filter));
}

}  // namespace ts
