// Answers that travel with the next call instead of costing the other side a wake-up of its own.
#pragma once

#include <kj/async.h>
#include <kj/common.h>

#include <memory>
#include <vector>

namespace ts {

// Cap'n Proto RPC ends a call with a message to the callee when the caller drops the answer. An
// answer that is dropped just before the next call shares that call's write. There are never more
// of them than calls were under way at once.
class KeptAnswers {
public:
  template <class Response>
  void keep(Response&& answer) {
    answers_.push_back(std::make_shared<Response>(kj::mv(answer)));
  }
  void drop() { answers_.clear(); }

private:
  std::vector<std::shared_ptr<void>> answers_;
};

// Answers to calls that the caller does not wait for: they leave with our next call to it, which
// then costs it one wake-up less.
class OwedAnswers {
public:
  // For the method of a server to return.
  kj::Promise<void> untilNextCall() {
    auto paf = kj::newPromiseAndFulfiller<void>();
    owed_.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }
  void give() {
    for (auto& answer : owed_) answer->fulfill();
    owed_.clear();
  }

private:
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> owed_;
};

}  // namespace ts
