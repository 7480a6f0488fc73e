#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/master_commands.h"
#include "cli/since.h"
#include "cli/words.h"
#include "wire/status_json.h"
#include "wire/translate.h"

namespace ts::cli {
namespace {

class Taker final : public wire::EventSink::Server {
public:
  Taker(TakeEvent take, kj::Own<kj::PromiseFulfiller<void>> caughtUp)
      : take_(std::move(take)), caughtUp_(kj::mv(caughtUp)) {}

  const std::size_t& taken() const { return taken_; }

protected:
  kj::Promise<void> event(EventContext context) override {
    take_(context.getParams().getLine());
    ++taken_;
    return kj::READY_NOW;
  }
  kj::Promise<void> caughtUp(CaughtUpContext) override {
    caughtUp_->fulfill();
    return kj::READY_NOW;
  }

private:
  TakeEvent take_;
  std::size_t taken_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> caughtUp_;
};

}  // namespace

void printEvents(Loop& loop, Master& master, const Options& options) {
  readEvents(loop, master, options, [&](wire::EventLine::Reader line) {
    std::string out = options.json ? textOf(toJson(line))
                                   : showTime(line.getUnixUs()) + "  " + text(line.getText());
    std::puts(visible(out).c_str());
    std::fflush(stdout);  // who follows wants it now
  });
}

void readEvents(Loop& loop, Master& master, const Options& options, TakeEvent take) {
  auto caughtUp = kj::newPromiseAndFulfiller<void>();
  auto taker = kj::heap<Taker>(std::move(take), kj::mv(caughtUp.fulfiller));
  const std::size_t& taken = taker->taken();
  auto request = master.session().eventsRequest();
  request.setSince(options.sinceUs);
  wire::EventSink::Client sink = kj::mv(taker);
  request.setSink(sink);
  auto handle = master.call(kj::mv(request));  // as long as it lives, lines come
  auto closed = master.whenClosed().then(
      []() -> kj::Promise<void> { return KJ_EXCEPTION(DISCONNECTED, "closed"); });
  kj::Promise<void> end = kj::NEVER_DONE;
  if (!options.follow) end = kj::mv(caughtUp.promise);
  auto over = closed.exclusiveJoin(kj::mv(end)).fork();
  try {
    if (options.follow) over.addBranch().wait(loop.scope);
    for (std::size_t before = 0;; before = taken) {
      try {
        return within(loop, options.timeout, over.addBranch());
      } catch (const Late&) {
        // The past may be long; it is over only when nothing comes any more.
        if (taken == before) throw master.lateFailure();
      }
    }
  } catch (const kj::Exception& e) {
    throw master.failureOf(e);
  }
}

}  // namespace ts::cli
