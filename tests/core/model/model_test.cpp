// Random walks over a cluster, checked against the promises of the design. A failure prints its
// seed and the shortest script found that shows it.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "world.h"

using namespace ts::test;

namespace {

unsigned fromEnvironment(const char* name, unsigned otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value ? unsigned(std::stoul(value)) : otherwise;
}

constexpr unsigned kWalks = 22000;  // for each row of the table to happen a thousand times
#ifndef MODEL_WALKS
#define MODEL_WALKS kWalks
#endif
constexpr unsigned kLength = 500;

// Every event, and every row of the failure table, at least 1,000 times.
const std::vector<std::string> kMustHappen{"event joins",
                                           "event reports",
                                           "event suspect",
                                           "event dead",
                                           "event drain",
                                           "event undrain",
                                           "event job",
                                           "event ended",
                                           "event join",
                                           "event left",
                                           "event member",
                                           "event seen",
                                           "event died",
                                           "event cleared",
                                           "event acquire",
                                           "event cancel",
                                           "event yield",
                                           "event in-slice",
                                           "event ok",
                                           "event refuse",
                                           "event fail",
                                           "event gone",
                                           "event late",
                                           "event pass",
                                           "event pause",
                                           "event resume",
                                           "event evict",
                                           "event clear",
                                           "event master-restarts",
                                           "row prepare refused",
                                           "row quiesce fails",
                                           "row overdue quiesce",
                                           "row save fails before the commit point",
                                           "row I cannot be saved again",
                                           "row saved and not released",
                                           "row released late",
                                           "row a call is forgotten",
                                           "row a join is undone",
                                           "row overdue save",
                                           "row restore lacks memory",
                                           "row restore fails",
                                           "row faulted(restore)",
                                           "row last call ends before the first save",
                                           "row last call ends after the first save",
                                           "row a node cannot complete a grant",
                                           "row a member dies",
                                           "row a member dies in mid-switch",
                                           "row the last member dies",
                                           "row a target dies under a call",
                                           "row overdue",
                                           "row a device is used outside a slice",
                                           "row a saved job is brought back unasked",
                                           "row node suspect",
                                           "row node dead",
                                           "row node returns from the dead",
                                           "row holder's connection lost"};

using Walk = std::vector<Move>;

Walk makeWalk(unsigned seed, std::size_t length) {
  std::mt19937 random(seed * 7919U + 1U);
  Walk walk(length);
  for (Move& m : walk) m = {unsigned(random()), unsigned(random()), unsigned(random())};
  return walk;
}

struct Result {
  std::string broken;  // empty: all promises kept
  std::vector<std::string> story;
  std::string actions;
};

Result run(unsigned seed, const Walk& walk, Counts& counts, bool record = false) {
  World world(seed, counts);
  if (record) world.record();
  Result result;
  try {
    for (const Move& move : walk) world.make(move);
    world.drain();
  } catch (const std::exception& b) {
    result.broken = b.what();
  }
  result.story = world.story();
  result.actions = world.actions();
  return result;
}

// Leaves out ever smaller parts as long as some promise is still broken.
Walk shrink(unsigned seed, Walk walk) {
  Counts ignored;
  for (std::size_t part = walk.size() / 2; part > 0;) {
    bool shorter = false;
    for (std::size_t at = 0; at + part <= walk.size();) {
      Walk less(walk.begin(), walk.begin() + std::ptrdiff_t(at));
      less.insert(less.end(), walk.begin() + std::ptrdiff_t(at + part), walk.end());
      if (run(seed, less, ignored).broken.empty()) {
        at += part;
      } else {
        walk = std::move(less);
        shorter = true;
      }
    }
    if (!shorter || part > 1) part /= 2;
  }
  return walk;
}

std::string report(unsigned seed, const Walk& walk) {
  Counts ignored;
  Walk least = fromEnvironment("MODEL_SHRINK", 1) ? shrink(seed, walk) : walk;
  Result result = run(seed, least, ignored);
  std::string text = "seed " + std::to_string(seed) + ": " + result.broken + "\n";
  for (const std::string& line : result.story) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("a cluster keeps its promises on random walks", "[core][model]") {
  unsigned first = fromEnvironment("MODEL_SEED", 1);
  unsigned walks = fromEnvironment("MODEL_WALKS", MODEL_WALKS);
  unsigned length = fromEnvironment("MODEL_LENGTH", kLength);
  Counts counts;
  for (unsigned seed = first; seed < first + walks; ++seed) {
    Walk walk = makeWalk(seed, length);
    Result result = run(seed, walk, counts);
    if (result.broken.empty()) continue;
    if (fromEnvironment("MODEL_GOON", 0) == 0) FAIL(report(seed, walk));
    std::printf("seed %u: %s\n", seed, result.broken.c_str());
  }
  bool whole = walks >= kWalks && length >= kLength;
  for (const auto& [what, count] : counts) {
    std::printf("%8llu  %s\n", static_cast<unsigned long long>(count), what.c_str());
  }
  if (!whole) return;
  for (const std::string& what : kMustHappen) {
    INFO(what);
    CHECK(counts[what] >= 1000);
  }
}

TEST_CASE("the same events at the same times give the same actions", "[core][model]") {
  Counts ignored;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Walk walk = makeWalk(seed, 300);
    Result once = run(seed, walk, ignored, true);
    Result again = run(seed, walk, ignored, true);
    CHECK_FALSE(once.actions.empty());
    CHECK(once.actions == again.actions);
  }
}
