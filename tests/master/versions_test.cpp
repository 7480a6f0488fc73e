#include <catch2/catch.hpp>

#include "master/house.h"
#include "wire/greet.h"
#include "wire/link.h"

using namespace ts;
using namespace ts::test;

namespace {

// A peer of whatever release the test wants it to be, at a whole master.
struct Caller {
  MasterHouse house;
  kj::TwoWayPipe pipe = house.loop.io->newTwoWayPipe();
  Link listener{
      kj::mv(pipe.ends[0]), Link::Side::Listener,
      newEntrance(house.master->house,
                  {.address = "peer:1", .hangUp = [](std::string) {}, .entered = [](Role) {}})};
  Link link{kj::mv(pipe.ends[1]), Link::Side::Caller};

  // What the two speak, or why they do not.
  std::string greeted(VersionRange range) {
    auto request = link.peer<wire::Master>().greetRequest();
    request.setMinVersion(range.min);
    request.setMaxVersion(range.max);
    Nonce nonce = newNonce();
    request.setNonce(kj::arrayPtr(nonce.data(), nonce.size()));
    std::string text;
    KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] {
                   text = std::to_string(request.send().wait(house.loop.scope).getVersion());
                 }))
      text = sentenceOf(*e);
    return text;
  }
};

constexpr std::uint16_t kOurs = kWireVersions.max;

}  // namespace

TEST_CASE("a peer of the next release speaks the version that both know", "[master]") {
  CHECK(Caller().greeted({kOurs, kOurs + 1}) == std::to_string(kOurs));
}

TEST_CASE("a peer without a version in common is refused with both ranges", "[master]") {
  constexpr VersionRange kTheirs{kOurs + 1, kOurs + 3};
  auto why = Caller().greeted(kTheirs);
  CHECK_THAT(why, Catch::Contains("the master speaks " + describe(kWireVersions)));
  CHECK_THAT(why, Catch::Contains("you speak " + describe(kTheirs)));
}
