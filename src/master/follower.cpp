#include "master/follower.h"

#include "log/log.h"
#include "wire/greet.h"

namespace ts {

Follower::Follower(History& history, std::uint64_t sinceUs, wire::EventSink::Client sink,
                   History::Filter filter)
    : history_(history),
      sink_(kj::mv(sink)),
      filter_(std::move(filter)),
      fromUs_(sinceUs),
      memoryUs_(history.begin()),
      tasks_(*this) {
  history_.followers_.insert(this);
  tasks_.add(readStore());
}

Follower::~Follower() noexcept(false) {
  history_.followers_.erase(this);
}

void Follower::wake() {
  if (sink_ == nullptr) return;
  if (tooFarBehind()) return drop("this reader was too far behind");
  if (!busy_) pump();
}

// Page by page, until what is in memory takes over.
kj::Promise<void> Follower::readStore() {
  if (fromUs_ >= memoryUs_) {  // memory has the rest
    inStore_ = false;
    busy_ = false;
    pump();
    return kj::READY_NOW;
  }
  return history_.stored(fromUs_, kPage).then([this](std::vector<EventRow> rows) {
    if (rows.empty()) fromUs_ = memoryUs_;
    return sendStored(std::move(rows), 0);
  });
}

kj::Promise<void> Follower::sendStored(std::vector<EventRow> rows, std::size_t at) {
  if (at == rows.size()) return readStore();
  if (rows[at].unixUs >= memoryUs_) {
    fromUs_ = memoryUs_;
    return readStore();
  }
  auto sent = send(rows[at]);
  fromUs_ = rows[at].unixUs + 1;
  return sent.then(
      [this, rows = std::move(rows), at]() mutable { return sendStored(std::move(rows), at + 1); });
}

void Follower::pump() {
  if (sink_ == nullptr) return;
  if (tooFarBehind()) return drop("this reader was too far behind");
  const EventRow* row = history_.next(fromUs_);
  while (row != nullptr && filter_ && !filter_(row->text)) row = history_.next(row->unixUs + 1);
  if (row == nullptr) return caughtUp();
  fromUs_ = row->unixUs + 1;
  busy_ = true;
  tasks_.add(send(*row).then([this] {
    busy_ = false;
    pump();
  }));
}

// Once: whoever wants the past only can stop here.
void Follower::caughtUp() {
  if (toldCaughtUp_) return;
  toldCaughtUp_ = true;
  KJ_IF_MAYBE (sink, sink_) {
    // An older reader does not know it, and needs it no more than before.
    tasks_.add(sink->caughtUpRequest().send().ignoreResult().catch_([](kj::Exception&&) {}));
  }
}

kj::Promise<void> Follower::send(const EventRow& row) {
  KJ_IF_MAYBE (sink, sink_) {
    if (filter_ && !filter_(row.text)) return kj::READY_NOW;
    auto call = sink->eventRequest();
    auto line = call.initLine();
    line.setUnixUs(row.unixUs);
    line.setVerb(row.text.substr(0, row.text.find(' ')));
    line.setText(row.text);
    return call.send().ignoreResult();
  }
  return kj::READY_NOW;
}

void Follower::drop(const std::string& reason) {
  filter_ = nullptr;
  auto last = send({history_.begin(), Line("dropped").add("reason", reason).text()});
  sink_ = nullptr;
  tasks_.add(kj::mv(last));
}

// The reader is gone, or does not want any more; or else the store has failed, and it is told so.
void Follower::taskFailed(kj::Exception&& exception) {
  if (sink_ == nullptr) return;
  if (exception.getType() == kj::Exception::Type::DISCONNECTED || !inStore_) {
    sink_ = nullptr;
    return;
  }
  drop("the past cannot be read: " + sentenceOf(exception));
}

}  // namespace ts
