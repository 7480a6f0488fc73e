#include "digest.h"

#include <catch2/catch.hpp>

#include "host_device.h"

using namespace demo;

namespace {

// Three blocks that do not fill their regions, lanes and words.
struct Memory {
  Memory()
      : few(device.make<std::uint8_t>(13)),
        one(device.make<std::uint64_t>(1)),
        many(device.make<std::uint32_t>(2 * kRegionWords + 71)),
        digest(device) {}
  std::uint64_t value() {
    digest.absorbMemory(0);
    return digest.value();
  }
  HostDevice device;
  Array<std::uint8_t> few;
  Array<std::uint64_t> one;
  Array<std::uint32_t> many;
  Digest digest;
};

}  // namespace

TEST_CASE("the digest depends on every byte of every block", "[demo]") {
  const std::uint64_t right = Memory().value();
  std::uint64_t bytes = 0;
  for (std::size_t block = 0; block < Memory().device.blocks().size(); ++block) {
    const std::uint64_t end = Memory().device.blocks()[block].count * 8;
    for (std::uint64_t byte = 0; byte < end; ++byte, ++bytes) {
      Memory memory;
      memory.device.spoil(block, byte);
      if (memory.value() == right) FAIL("block " << block << " byte " << byte << " does not count");
    }
  }
  CHECK(bytes == Memory().device.bytes());
}

TEST_CASE("the digest depends on where a word is", "[demo]") {
  Memory here;
  Memory there;
  here.device.blocks()[2].words[5] = 77;
  there.device.blocks()[2].words[6] = 77;
  CHECK(here.value() != there.value());
}

TEST_CASE("a byte that was wrong at one look and right at the next still shows", "[demo]") {
  Memory right;
  Memory wrong;
  wrong.device.spoil(0, 3);
  right.value();
  wrong.value();
  wrong.device.spoil(0, 3);
  CHECK(right.value() != wrong.value());
}
