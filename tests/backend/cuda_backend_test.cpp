#include "backend/cuda_backend.h"

#include <future>

#include "cuda_script.h"

using namespace ts;
using namespace ts::test;
using Catch::Contains;
using cuda::Result;
using enum BackendOutcome::Code;

TEST_CASE("a save and restore round trip makes each driver call once", "[backend]") {
  CudaScript s;
  BackendOutcome quiet = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(quiet.ok());
  CHECK(quiet.after == TargetState::Locked);
  BackendOutcome saved = s.backend.save(s.target, {});
  CHECK(saved.ok());
  CHECK(saved.after == TargetState::Saved);
  CHECK(saved.bytes == 4096);
  CHECK(s.backend.restore(s.target, {}).bytes == 4096);
  CHECK(s.backend.release(s.target).after == TargetState::Running);
  CHECK(s.calls() == CudaScript::Calls{"lock", "checkpoint", "restore", "unlock"});
}

TEST_CASE("FF-A17: a restore never asks the driver to move a process to other devices",
          "[backend]") {
  CudaScript s(kSaved);
  CHECK(s.backend.restore(s.target, {3}).ok());
  CHECK(s.fake.remappings == 0);
}

TEST_CASE("P57: what was already obeyed is not done twice", "[backend]") {
  CudaScript s(kSaved);
  BackendOutcome saved = s.backend.save(s.target, {});
  CHECK(saved.ok());
  CHECK_THAT(saved.detail, Contains("is saved already"));
  CHECK(s.calls().empty());
}

TEST_CASE("FF-A24: a lock never waits longer than its deadline, and never for ever", "[backend]") {
  CudaScript s;
  REQUIRE(s.backend.quiesce(s.target, std::chrono::steady_clock::now() + std::chrono::seconds(60))
              .ok());
  CHECK(s.fake.timeoutMs > 0);
  CHECK(s.fake.timeoutMs <= 60'000);
}

TEST_CASE("a deadline beyond what the driver can count is cut, not wrapped", "[backend]") {
  CudaScript s;
  auto far = std::chrono::steady_clock::now() + std::chrono::hours(24 * 365);
  REQUIRE(s.backend.quiesce(s.target, far).ok());
  CHECK(s.fake.timeoutMs == static_cast<unsigned>(std::numeric_limits<int>::max()));
}

TEST_CASE("a deadline that has passed asks nobody and changes nothing", "[backend]") {
  CudaScript s;
  BackendOutcome outcome = s.backend.quiesce(s.target, std::chrono::steady_clock::now());
  CHECK(outcome.code == TimedOut);
  CHECK(outcome.after == TargetState::Running);
  CHECK(s.calls().empty());
}

TEST_CASE("FF-A2: a lock that times out is a time-out and leaves the process running",
          "[backend]") {
  CudaScript s;
  s.reply("lock", {.result = Result::NotReady});
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.code == TimedOut);
  CHECK(outcome.after == TargetState::Running);
  CHECK_FALSE(outcome.lasting);
  CHECK_THAT(outcome.detail,
             Contains("did not come to rest") && Contains("CUDA_ERROR_NOT_READY (600)"));
}

TEST_CASE("a lock that fails and did take effect is undone", "[backend]") {
  CudaScript s;
  s.reply("lock", {.result = Result::OperatingSystem, .becomes = kLocked});
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.code == DriverError);
  CHECK(outcome.after == TargetState::Running);
  CHECK_FALSE(outcome.lasting);
  CHECK(s.calls() == CudaScript::Calls{"lock", "unlock"});
}

TEST_CASE("FF-A20: a save that fails and did take effect is undone, so the process can run",
          "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::OperatingSystem, .becomes = kSaved});
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.code == DriverError);
  CHECK(outcome.after == TargetState::Locked);
  CHECK_FALSE(outcome.lasting);
  CHECK(s.calls() == CudaScript::Calls{"checkpoint", "restore"});
}

TEST_CASE(
    "FF-A20: a restore that fails and did take effect is undone, so the process is still saved",
    "[backend]") {
  CudaScript s(kSaved);
  s.reply("restore", {.result = Result::InvalidValue, .becomes = kLocked});
  BackendOutcome outcome = s.backend.restore(s.target, {});
  CHECK(outcome.after == TargetState::Saved);
  CHECK_FALSE(outcome.lasting);
  CHECK(s.calls() == CudaScript::Calls{"restore", "checkpoint"});
}

TEST_CASE("FF-A20: an unlock that complains and did work is a success that tells of it",
          "[backend]") {
  CudaScript s(kLocked);
  s.reply("unlock", {.result = Result::OperatingSystem, .becomes = kRunning});
  BackendOutcome outcome = s.backend.release(s.target);
  CHECK(outcome.ok());
  CHECK(outcome.after == TargetState::Running);
  CHECK_THAT(outcome.detail, Contains("CUDA_ERROR_OPERATING_SYSTEM (304)"));
}

TEST_CASE("an undo that fails is lasting, and both errors are told", "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::OperatingSystem, .becomes = kSaved});
  s.reply("restore", {.result = Result::OutOfMemory});
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.lasting);
  CHECK(outcome.after == TargetState::Saved);
  CHECK_THAT(outcome.detail, Contains("OPERATING_SYSTEM") && Contains("OUT_OF_MEMORY"));
}

TEST_CASE("a success without an effect is a failure", "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::Success});
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.code == DriverError);
  CHECK(outcome.after == TargetState::Locked);
  CHECK_THAT(outcome.detail, Contains("CUDA_SUCCESS") && Contains("it is locked"));
}

TEST_CASE("FF-A1: a restore without room is refused, and the snapshot stays good", "[backend]") {
  CudaScript s(kSaved);
  s.reply("restore", {.result = Result::OutOfMemory});
  s.reply("restore", {.result = Result::OutOfMemory});
  BackendOutcome outcome = s.backend.restore(s.target, {});
  CHECK(outcome.code == NoSpace);
  CHECK(outcome.after == TargetState::Saved);
  CHECK_FALSE(outcome.lasting);
  CHECK(s.backend.restore(s.target, {}).ok());
}

TEST_CASE("FF-A1: a restore that ran out of memory and broke the process is lasting at once",
          "[backend]") {
  CudaScript s(kSaved);
  s.reply("restore", {.result = Result::OutOfMemory});
  s.reply("restore", {.result = Result::OperatingSystem});
  BackendOutcome outcome = s.backend.restore(s.target, {});
  CHECK(outcome.code == DriverError);
  CHECK(outcome.lasting);
  CHECK_THAT(outcome.detail, Contains("OUT_OF_MEMORY") && Contains("then") && Contains("(304)"));
}

TEST_CASE("FF-A15: out of memory while saving is a driver error, not a lack of room", "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::OutOfMemory});
  CHECK(s.backend.save(s.target, {}).code == DriverError);
}

TEST_CASE("an unlock that the driver calls illegal on a locked process is lasting", "[backend]") {
  CudaScript s(kLocked);
  s.reply("unlock", {.result = Result::IllegalState});
  BackendOutcome outcome = s.backend.release(s.target);
  CHECK(outcome.lasting);
  CHECK(outcome.after == TargetState::Locked);
}

TEST_CASE("FF-A24: a process that the driver has given up is lasting and is not called",
          "[backend]") {
  CudaScript s(kFailed);
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.code == DriverError);
  CHECK(outcome.lasting);
  CHECK(outcome.after == TargetState::Failed);
  CHECK(s.calls().empty());
}

TEST_CASE("a call that ends in the failed state is lasting", "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::NotSupported, .becomes = kFailed});
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.code == DriverError);
  CHECK(outcome.lasting);
}

TEST_CASE("FF-A24: a state that we do not know is named, lasting, and nothing is called",
          "[backend]") {
  CudaScript s(4);
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.code == DriverError);
  CHECK(outcome.lasting);
  CHECK(outcome.after == TargetState::Unknown);
  CHECK_THAT(outcome.detail, Contains("unknown state 4"));
  CHECK(s.backend.state(s.target) == TargetState::Unknown);
  CHECK(s.calls().empty());
}

TEST_CASE("P56, P57: the wrong order is refused with what the process is", "[backend]") {
  CudaScript s;
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.code == WrongState);
  CHECK_THAT(outcome.detail, Contains("is running, not locked"));
  CHECK(s.calls().empty());
}

TEST_CASE("FF-A7: a process without device state is not an error and is never locked",
          "[backend]") {
  CudaScript s;
  s.fake.states.clear();
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.code == NoContext);
  CHECK(outcome.after == TargetState::NoContext);
  CHECK(s.calls().empty());
}

TEST_CASE("a driver that calls every process running is asked for a restore thread", "[backend]") {
  CudaScript s;
  s.fake.states.clear();
  s.reply("state", {.becomes = kRunning});
  CHECK(s.backend.quiesce(s.target, inFiveMinutes()).code == NoContext);
  CHECK(s.calls().empty());
}

TEST_CASE("FF-A8: a process that lost its context before the lock is without device state",
          "[backend]") {
  CudaScript s;
  s.reply("lock", {.result = Result::NotInitialized});
  CHECK(s.backend.quiesce(s.target, inFiveMinutes()).code == NoContext);
}

TEST_CASE("FF-A7: a thread's id is never passed to the driver", "[backend]") {
  CudaScript s;
  std::promise<pid_t> tid;
  std::promise<void> stop;
  std::thread idle([&] {
    tid.set_value(::gettid());
    stop.get_future().wait();
  });
  BackendOutcome outcome = s.backend.quiesce({.pid = tid.get_future().get()}, inFiveMinutes());
  stop.set_value();
  idle.join();
  CHECK(outcome.code == NotAProcess);
  CHECK(s.calls().empty());
}

TEST_CASE("FF-A6: a target that dies inside a call is gone, not a failed call", "[backend]") {
  CudaScript s;
  s.reply("lock", {.result = Result::OperatingSystem, .during = [&] { s.child.killUnreaped(); }});
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.code == TargetGone);
  CHECK(outcome.after == TargetState::Gone);
  CHECK_THAT(outcome.detail, Contains("has ended during cuCheckpointProcessLock"));
  CHECK(s.backend.state(s.target) == TargetState::Gone);
}

TEST_CASE("a missing permission says how to run the node daemon", "[backend]") {
  CudaScript s;
  s.reply("lock", {.result = Result::NotPermitted});
  CHECK_THAT(s.backend.quiesce(s.target, inFiveMinutes()).detail,
             Contains("CUDA_ERROR_NOT_PERMITTED (800)") && Contains("CAP_SYS_PTRACE"));
}

TEST_CASE(
    "a state query that hangs, as on the peer of a locked process, does not keep the lock away",
    "[backend]") {
  CudaScript s(kRunning, std::chrono::milliseconds(50));
  std::promise<void> letGo;
  s.reply("state",
          {.becomes = kRunning, .during = [open = letGo.get_future().share()] { open.wait(); }});
  // The peers are at rest once this one is locked: then the driver answers again.
  s.reply("lock", {.becomes = kLocked, .during = [&] { letGo.set_value(); }});
  BackendOutcome outcome = s.backend.quiesce(s.target, inFiveMinutes());
  CHECK(outcome.ok());
  CHECK(outcome.after == TargetState::Locked);
}

TEST_CASE("an illegal lock after a silent state query is no undo: it was locked before",
          "[backend]") {
  CudaScript s(kLocked, std::chrono::milliseconds(50));
  std::promise<void> letGo;
  s.reply("state",
          {.becomes = kLocked, .during = [open = letGo.get_future().share()] { open.wait(); }});
  s.reply("lock", {.result = Result::IllegalState, .during = [&] { letGo.set_value(); }});
  CHECK(s.backend.quiesce(s.target, inFiveMinutes()).ok());
  CHECK(s.calls() == CudaScript::Calls{"lock"});
}

TEST_CASE("FF-A20: a save that another caller's call finished first is done, and not undone",
          "[backend]") {
  CudaScript s(kLocked);
  s.reply("checkpoint", {.result = Result::IllegalState, .becomes = kSaved});
  BackendOutcome outcome = s.backend.save(s.target, {});
  CHECK(outcome.ok());
  CHECK(outcome.after == TargetState::Saved);
  CHECK(s.calls() == CudaScript::Calls{"checkpoint"});
}

TEST_CASE("FF-A6: a target that dies while it is asked for its state is gone, not a failed call",
          "[backend]") {
  CudaScript s;
  s.reply("state", {.result = Result::InvalidValue, .during = [&] { s.child.killUnreaped(); }});
  CHECK(s.backend.quiesce(s.target, inFiveMinutes()).code == TargetGone);
  CHECK(s.calls() == CudaScript::Calls{});

  CudaScript t(kLocked);
  t.reply("state", {.becomes = kLocked});
  t.reply("state", {.result = Result::InvalidValue, .during = [&] { t.child.killUnreaped(); }});
  CHECK(t.backend.release(t.target).code == TargetGone);
}
