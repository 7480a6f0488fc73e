// Answers of calls, kept until the next call goes out: they cost the callee no wake-up of its own.
#pragma once

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

}  // namespace ts
