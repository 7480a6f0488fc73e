// One reader of the history: a line at a time, the next when the last has been taken.
#pragma once

#include "master/history.h"

namespace ts {

class Follower final : public wire::OperatorSession::Handle::Server,
                       private kj::TaskSet::ErrorHandler {
public:
  Follower(History& history, std::uint64_t sinceUs, wire::EventSink::Client sink,
           History::Filter filter);
  ~Follower() noexcept(false);

  void wake();  // there is a new line

private:
  kj::Promise<void> readStore();
  kj::Promise<void> sendStored(std::vector<EventRow> rows, std::size_t at);
  void pump();
  bool tooFarBehind() const { return !inStore_ && history_.evictedUs_ >= fromUs_; }
  kj::Promise<void> send(const EventRow& row);
  void caughtUp();
  void drop(const std::string& reason);
  void taskFailed(kj::Exception&& exception) override;

  static constexpr std::size_t kPage = 1000;

  History& history_;
  kj::Maybe<wire::EventSink::Client> sink_;  // nothing: ended
  History::Filter filter_;
  std::uint64_t fromUs_;    // the next line to send is at or after this
  std::uint64_t memoryUs_;  // where memory began when it started: before it, the store is read
  bool inStore_ = true;
  bool toldCaughtUp_ = false;
  bool busy_ = true;  // a line is under way, or the store is being read
  kj::TaskSet tasks_;
};

}  // namespace ts
