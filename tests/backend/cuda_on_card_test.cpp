// The promises of the backend against a whole driver: simgpu's, or the real one ([gpu] runs on
// both).
#include <thread>

#include "one_card.h"

using namespace ts;
using namespace ts::test;
using Catch::Contains;
using enum BackendOutcome::Code;

namespace {

Deadline inAMinute() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

std::string words(std::initializer_list<std::string> all) {
  std::string line;
  for (const auto& word : all) line += (line.empty() ? "" : " ") + word;
  return line;
}

// A program with a pattern in its device memory.
struct Job {
  explicit Job(std::uint64_t size, int seed)
      : bytes(std::to_string(size)),
        pattern(std::to_string(seed)),
        at(program->value("alloc " + bytes)) {
    program->value(words({"pattern", at, bytes, pattern}));
  }
  std::string check() { return program->value(words({"check", at, bytes, pattern})); }
  Target target() const { return {.pid = program->pid()}; }

  std::unique_ptr<Actor> program = OneCard::get().program();
  std::string bytes;
  std::string pattern;
  std::string at;
};

// Knobs are back where they were, whatever the test says.
struct Knob {
  Knob(std::string name, const std::string& value) : key(std::move(name)) {
    OneCard::get().stage().set(key, value);
  }
  ~Knob() { OneCard::get().stage().set(key, ""); }
  std::string key;
};

}  // namespace

TEST_CASE("a process is saved, another fills the card, and every byte comes back to its address",
          "[gpu]") {
  OneCard& card = OneCard::get();
  CudaBackend& backend = *card.backend;
  INFO(backend.probe().detail);
  REQUIRE(backend.probe().usable);
  std::uint64_t empty = card.usedBytes();
  Job job(40 * kMiB, 7);
  CHECK(card.usedBytes() >= empty + 40 * kMiB);

  CHECK(backend.state(job.target()) == TargetState::Running);
  BackendOutcome quiet = backend.quiesce(job.target(), inAMinute());
  INFO(quiet.detail);
  REQUIRE(quiet.ok());
  BackendOutcome saved = backend.save(job.target(), {});
  INFO(saved.detail);
  REQUIRE(saved.ok());
  CHECK(saved.after == TargetState::Saved);
  CHECK(backend.state(job.target()) == TargetState::Saved);
  CHECK(card.usedBytes() < empty + 40 * kMiB);
  {
    Job other(50 * kMiB, 8);
    CHECK(other.check() == "same");
  }
  BackendOutcome restored = backend.restore(job.target(), {});
  INFO(restored.detail);
  REQUIRE(restored.ok());
  CHECK(restored.after == TargetState::Locked);
  BackendOutcome released = backend.release(job.target());
  INFO(released.detail);
  REQUIRE(released.ok());
  CHECK(job.check() == "same");
}

TEST_CASE("a process without device state is left alone", "[gpu]") {
  auto program = OneCard::get().programWithoutContext();
  REQUIRE_FALSE(program->ask("no such command").empty());  // it lives
  BackendOutcome outcome = OneCard::get().backend->quiesce({.pid = program->pid()}, inAMinute());
  INFO(outcome.detail);
  CHECK(outcome.code == NoContext);
}

TEST_CASE("a quiesced process is released with its state as it was", "[gpu]") {
  Job job(8 * kMiB, 3);
  CudaBackend& backend = *OneCard::get().backend;
  REQUIRE(backend.quiesce(job.target(), inAMinute()).ok());
  CHECK(backend.state(job.target()) == TargetState::Locked);
  REQUIRE(backend.release(job.target()).ok());
  CHECK(job.check() == "same");
}

TEST_CASE("a save before a quiesce is refused by us, and the process runs on", "[gpu]") {
  Job job(8 * kMiB, 3);
  BackendOutcome outcome = OneCard::get().backend->save(job.target(), {});
  CHECK(outcome.code == WrongState);
  CHECK(job.check() == "same");
}

TEST_CASE("FF-A7: a thread of a CUDA process is refused and nothing happens to the process",
          "[gpu]") {
  Job job(8 * kMiB, 3);
  pid_t tid = std::stoi(job.program->value("thread"));
  BackendOutcome outcome = OneCard::get().backend->quiesce({.pid = tid}, inAMinute());
  CHECK(outcome.code == NotAProcess);
  CHECK(job.check() == "same");
}

TEST_CASE("a saved process that is killed is gone, and its memory with it", "[gpu]") {
  OneCard& card = OneCard::get();
  std::uint64_t before = card.usedBytes();
  Job job(8 * kMiB, 3);
  Target target = job.target();
  REQUIRE(card.backend->quiesce(target, inAMinute()).ok());
  REQUIRE(card.backend->save(target, {}).ok());
  job.program->kill();
  CHECK(card.backend->state(target) == TargetState::Gone);
  CHECK(card.backend->restore(target, {}).code == TargetGone);
  CHECK(card.backend->discard(target).ok());
  CHECK(card.usedBytes() <= before);
}

TEST_CASE("what was moved is measured", "[simgpu]") {
  Job job(32 * kMiB, 5);
  CudaBackend& backend = *OneCard::get().backend;
  REQUIRE(backend.quiesce(job.target(), inAMinute()).ok());
  CHECK(backend.save(job.target(), {}).bytes >= 32 * kMiB);
  CHECK(backend.restore(job.target(), {}).bytes >= 32 * kMiB);
  REQUIRE(backend.release(job.target()).ok());
}

TEST_CASE("FF-A2: a process that does not come to rest times out and runs on", "[simgpu]") {
  Job job(8 * kMiB, 3);
  Knob knob("lock_times_out", "yes");
  auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  BackendOutcome outcome = OneCard::get().backend->quiesce(job.target(), soon);
  INFO(outcome.detail);
  CHECK(outcome.code == TimedOut);
  CHECK(outcome.after == TargetState::Running);
  CHECK(job.check() == "same");
}

TEST_CASE("a restore without room leaves the snapshot good, and succeeds when there is room",
          "[simgpu]") {
  Job job(40 * kMiB, 7);
  CudaBackend& backend = *OneCard::get().backend;
  REQUIRE(backend.quiesce(job.target(), inAMinute()).ok());
  REQUIRE(backend.save(job.target(), {}).ok());
  {
    Job stranger(50 * kMiB, 8);
    BackendOutcome outcome = backend.restore(job.target(), {});
    INFO(outcome.detail);
    CHECK(outcome.code == NoSpace);
    CHECK_FALSE(outcome.lasting);
    CHECK(outcome.after == TargetState::Saved);
  }
  REQUIRE(backend.restore(job.target(), {}).ok());
  REQUIRE(backend.release(job.target()).ok());
  CHECK(job.check() == "same");
}

TEST_CASE("FF-A1: a restore without room that breaks the process for good is lasting at once",
          "[simgpu]") {
  Knob knob("sticky_restore_oom", "yes");
  Job job(40 * kMiB, 7);
  CudaBackend& backend = *OneCard::get().backend;
  REQUIRE(backend.quiesce(job.target(), inAMinute()).ok());
  REQUIRE(backend.save(job.target(), {}).ok());
  Job stranger(50 * kMiB, 8);
  BackendOutcome outcome = backend.restore(job.target(), {});
  INFO(outcome.detail);
  CHECK(outcome.code == DriverError);
  CHECK(outcome.lasting);
  CHECK_THAT(outcome.detail, Contains("OUT_OF_MEMORY") && Contains("304"));
}

TEST_CASE("two processes are saved at the same time", "[gpu]") {
  Job first(16 * kMiB, 1);
  Job second(16 * kMiB, 2);
  CudaBackend& backend = *OneCard::get().backend;
  REQUIRE(backend.quiesce(first.target(), inAMinute()).ok());
  REQUIRE(backend.quiesce(second.target(), inAMinute()).ok());
  BackendOutcome saved;
  std::thread other([&] { saved = backend.save(first.target(), {}); });
  CHECK(backend.save(second.target(), {}).ok());
  other.join();
  CHECK(saved.ok());
  for (const Job* job : {&first, &second}) {
    CHECK(backend.restore(job->target(), {}).ok());
    CHECK(backend.release(job->target()).ok());
  }
  CHECK(first.check() == "same");
  CHECK(second.check() == "same");
}

TEST_CASE("FF-A6: a target that is killed while the driver works on it is gone, not a failed call",
          "[simgpu]") {
  Job job(8 * kMiB, 3);
  OneCard& card = OneCard::get();
  Target target = job.target();
  Knob knob("hang.lock@" + std::to_string(target.pid), "yes");
  BackendOutcome outcome;
  std::thread call([&] { outcome = card.backend->quiesce(target, inAMinute()); });
  std::string begun = "begin lock pid=" + std::to_string(target.pid);
  while (card.stage().trace().find(begun) == std::string::npos) std::this_thread::yield();
  job.program->kill();
  call.join();
  INFO(outcome.detail);
  CHECK(outcome.code == TargetGone);
  CHECK(outcome.after == TargetState::Gone);
}
