#include "backend/none_backend.h"

#include <catch2/catch.hpp>

#include "support/child.h"

using namespace ts;
using test::Child;
using enum BackendOutcome::Code;

namespace {

Deadline anyTime() {
  return std::chrono::steady_clock::now() + std::chrono::hours(1);
}

}  // namespace

TEST_CASE("none goes through the states of a switch and moves nothing", "[backend]") {
  Child child;
  NoneBackend none;
  Target target{.pid = child.pid()};
  CHECK(none.state(target) == TargetState::Running);
  CHECK(none.quiesce(target, anyTime()).after == TargetState::Locked);
  BackendOutcome saved = none.save(target, {});
  CHECK(saved.after == TargetState::Saved);
  CHECK(saved.bytes == 0);
  CHECK(none.state(target) == TargetState::Saved);
  CHECK(none.restore(target, {}).after == TargetState::Locked);
  CHECK(none.release(target).after == TargetState::Running);
  CHECK(none.state(target) == TargetState::Running);
}

TEST_CASE("none accepts a call that was already obeyed", "[backend]") {
  Child child;
  NoneBackend none;
  Target target{.pid = child.pid()};
  CHECK(none.release(target).ok());
  CHECK(none.quiesce(target, anyTime()).ok());
  CHECK(none.quiesce(target, anyTime()).ok());
}

TEST_CASE("none refuses to save who is not locked, and says what it is", "[backend]") {
  Child child;
  NoneBackend none;
  BackendOutcome outcome = none.save({.pid = child.pid()}, {});
  CHECK(outcome.code == WrongState);
  CHECK(outcome.after == TargetState::Running);
  CHECK_THAT(outcome.detail, Catch::Contains("is running, not locked"));
}

TEST_CASE("none sees that a target has ended, also as a zombie", "[backend]") {
  Child child;
  NoneBackend none;
  Target target{.pid = child.pid()};
  REQUIRE(none.quiesce(target, anyTime()).ok());
  child.killUnreaped();
  CHECK(none.state(target) == TargetState::Gone);
  CHECK(none.save(target, {}).code == TargetGone);
  child.kill();
  CHECK(none.state(target) == TargetState::Gone);
  CHECK(none.discard(target).ok());
}
