// Bytes on a master's port: from a peer that has not greeted yet up to one that is in.
#include <fcntl.h>

#include "master/master.h"
#include "support/loop.h"
#include "wire/link.h"

using namespace ts;

namespace {

struct Premises {
  test::Loop loop;
  MasterConfig config;
  Store store{":memory:"};
  Workers workers;
  std::unique_ptr<Auth> auth = newNoAuth();
  Log log{Level::Error, ::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  Master master{{loop.port, config, store, workers, *auth, log, "fuzz"}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Premises house;
  auto pipe = house.loop.io->newTwoWayPipe();
  Peer peer{.address = "fuzz:1", .hangUp = [](std::string) {}, .entered = [](Role) {}};
  auto link = kj::heap<Link>(kj::mv(pipe.ends[0]), Link::Side::Listener,
                             newEntrance(house.master.house, std::move(peer)));
  auto sent = pipe.ends[1]
                  ->write(data, size)
                  .then([&] { pipe.ends[1]->shutdownWrite(); })
                  .eagerlyEvaluate([](kj::Exception&&) {});
  auto heard = pipe.ends[1]->readAllBytes().ignoreResult();
  auto over = kj::joinPromises(kj::arr(kj::mv(sent), kj::mv(heard)))
                  .exclusiveJoin(link->whenClosed())
                  .catch_([](kj::Exception&&) {});
  over.wait(house.loop.scope);
  link = nullptr;
  house.loop.scope.poll();
  return 0;
}
