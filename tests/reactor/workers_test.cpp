#include "reactor/workers.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/loop.h"

using namespace ts;
using test::Loop;

TEST_CASE("a call that hangs delays neither the loop nor other calls", "[reactor]") {
  Loop l;
  std::promise<void> letGo;
  Workers workers;
  auto hung = workers.call<int>([go = letGo.get_future().share()] {
    go.wait();
    return 1;
  });
  for (int i = 0; i < 10; ++i) {
    CHECK(workers.call<int>([i] { return i; }).wait(l.scope) == i);
  }
  CHECK_FALSE(hung.poll(l.scope));
  CHECK(workers.busy() == 1);
  letGo.set_value();
  CHECK(hung.wait(l.scope) == 1);
}

TEST_CASE("idle threads are used again before new ones are started", "[reactor]") {
  Loop l;
  Workers workers(8);
  for (int i = 0; i < 50; ++i) {
    workers.call<int>([] { return 0; }).wait(l.scope);
    while (workers.busy() > 0) std::this_thread::yield();
  }
  CHECK(workers.threads() == 1);
}

TEST_CASE("beyond the limit calls wait in order", "[reactor]") {
  Loop l;
  std::promise<void> letGo;
  auto go = letGo.get_future().share();
  Workers workers(2);
  std::atomic<int> done = 0;
  std::vector<kj::Promise<int>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(workers.call<int>([go, &done] {
      go.wait();
      return ++done;
    }));
  }
  while (workers.busy() < 2) std::this_thread::yield();
  CHECK(workers.threads() == 2);
  CHECK(workers.waiting() == 3);
  letGo.set_value();
  for (auto& call : calls) call.wait(l.scope);
  CHECK(done == 5);
}

TEST_CASE("a call that throws rejects its promise and the thread goes on", "[reactor]") {
  Loop l;
  Workers workers(1);
  auto bad = workers.call<int>([]() -> int { throw std::runtime_error("boom"); });
  auto good = workers.call<int>([] { return 7; });
  CHECK_THROWS_WITH(bad.wait(l.scope), Catch::Contains("boom"));
  CHECK(good.wait(l.scope) == 7);
}

TEST_CASE("workers drain before they stop, even if nobody listens any more", "[reactor]") {
  Loop l;
  std::atomic<int> done = 0;
  {
    Workers workers(1);
    for (int i = 0; i < 3; ++i) {
      auto dropped = workers.call<int>([&done] { return ++done; });
    }
  }
  CHECK(done == 3);
}

TEST_CASE("a drain waits for the calls there are, and not for ever", "[reactor]") {
  Loop l;
  std::promise<void> letGo;
  Workers workers;
  CHECK(workers.drain(std::chrono::hours(1)));
  auto hung = workers.call<int>([go = letGo.get_future().share()] {
    go.wait();
    return 1;
  });
  CHECK_FALSE(workers.drain(std::chrono::milliseconds(1)));
  letGo.set_value();
  CHECK(workers.drain(std::chrono::hours(1)));
}

TEST_CASE("a result that owns memory comes home whole, however often", "[reactor]") {
  Loop l;
  Workers workers;
  for (int i = 0; i < 20; ++i) {
    const std::string text(100 + i, 'x');  // too long to lie in the string itself
    auto home = workers.call<std::vector<std::string>>([text] { return std::vector{text, text}; });
    CHECK(home.wait(l.scope) == std::vector{text, text});
  }
}

TEST_CASE("a result that nobody waits for any more is dropped with its call", "[reactor]") {
  Loop l;
  auto kept = std::make_shared<int>(7);
  std::weak_ptr<int> watched = kept;
  {
    Workers workers(1);
    auto dropped = workers.call<std::shared_ptr<int>>([kept = std::move(kept)] { return kept; });
  }
  CHECK(watched.expired());
}
