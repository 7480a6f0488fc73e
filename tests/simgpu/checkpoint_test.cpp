#include <catch2/catch.hpp>

#include <thread>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

constexpr auto kRunning = "ok 0";
constexpr auto kLocked = "ok 1";
constexpr auto kCheckpointed = "ok 2";
constexpr auto kIllegalState = "error 401";

std::string bytes(std::uint64_t n) {
  return std::to_string(n);
}

}  // namespace

TEST_CASE("a saved process's bytes leave the card, are in its own memory, and come back",
          "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  std::string at = job->value("alloc " + bytes(48 * kMiB));
  job->value("pattern " + at + " " + bytes(48 * kMiB) + " 7");
  std::uint64_t before = job->number("anonymous");

  CHECK(caller->ask("lock " + job->self() + " 1000") == "ok");
  CHECK(caller->ask("state " + job->self()) == kLocked);
  CHECK(caller->ask("checkpoint " + job->self()) == "ok");
  CHECK(caller->ask("state " + job->self()) == kCheckpointed);
  CHECK(stage.card().usedBytes() == 0);
  CHECK(job->number("anonymous") >= before + 48 * kMiB);

  auto other = stage.started();  // fills the card meanwhile
  std::string theirs = other->value("alloc " + bytes(60 * kMiB));
  CHECK(other->value("all-are " + theirs + " " + bytes(60 * kMiB) + " 0") == "yes");
  other->value("pattern " + theirs + " " + bytes(60 * kMiB) + " 8");
  CHECK(caller->ask("restore " + job->self()) == "error 2");
  CHECK(caller->ask("state " + job->self()) == kCheckpointed);
  other->value("free " + theirs);

  CHECK(caller->ask("restore " + job->self()) == "ok");
  CHECK(caller->ask("state " + job->self()) == kLocked);
  CHECK(caller->ask("unlock " + job->self()) == "ok");
  CHECK(caller->ask("state " + job->self()) == kRunning);
  CHECK(job->number("anonymous") < before + 48 * kMiB);
  CHECK(job->value("check " + at + " " + bytes(48 * kMiB) + " 7") == "same");
}

TEST_CASE("each checkpoint call in a wrong state is an illegal state and changes nothing",
          "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  std::string pid = job->self();
  CHECK(caller->ask("checkpoint " + pid) == kIllegalState);
  CHECK(caller->ask("restore " + pid) == kIllegalState);
  CHECK(caller->ask("unlock " + pid) == kIllegalState);
  CHECK(caller->ask("state " + pid) == kRunning);
  caller->value("lock " + pid + " 0");
  CHECK(caller->ask("lock " + pid + " 0") == kIllegalState);
  CHECK(caller->ask("restore " + pid) == kIllegalState);
  CHECK(caller->ask("state " + pid) == kLocked);
  caller->value("checkpoint " + pid);
  CHECK(caller->ask("lock " + pid + " 0") == kIllegalState);
  CHECK(caller->ask("checkpoint " + pid) == kIllegalState);
  CHECK(caller->ask("unlock " + pid) == kIllegalState);
  CHECK(caller->ask("state " + pid) == kCheckpointed);
}

TEST_CASE("a locked process's calls wait for the unlock", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  caller->value("lock " + job->self() + " 1000");
  job->say("alloc 65536");
  caller->value("checkpoint " + job->self());
  CHECK(stage.card().usedBytes() == 0);  // the call is asked for and has not been served
  caller->value("restore " + job->self());
  CHECK(stage.card().usedBytes() == 0);
  caller->value("unlock " + job->self());
  CHECK(job->hear().starts_with("ok "));
  CHECK(stage.card().usedBytes() == 65536);
}

TEST_CASE("a lock that work outlasts is not ready, and the process runs on", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("spin 400000");
  CHECK(caller->ask("lock " + job->self() + " 20") == "error 600");
  CHECK(caller->ask("state " + job->self()) == kRunning);
  CHECK(job->ask("alloc 65536").starts_with("ok "));
  CHECK(caller->ask("lock " + job->self() + " 0") == "ok");  // waits for the work
}

TEST_CASE("a lock of a stopped process ends by its time-out", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  ::kill(job->pid(), SIGSTOP);
  CHECK(caller->ask("lock " + job->self() + " 50") == "error 600");
  ::kill(job->pid(), SIGCONT);
  CHECK(job->ask("alloc 65536").starts_with("ok "));
  CHECK(caller->ask("state " + job->self()) == kRunning);
}

TEST_CASE("a thread's id acts on its process", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  std::string tid = job->value("thread");
  REQUIRE(tid != job->self());
  CHECK(caller->ask("lock " + tid + " 0") == "ok");
  CHECK(caller->ask("state " + job->self()) == kLocked);
  CHECK(caller->number("helper " + job->self()) > 0);
}

TEST_CASE("a process without CUDA is not initialised, and one that is gone no valid target",
          "[simgpu]") {
  Stage stage;
  auto plain = stage.actor();
  auto caller = stage.actor();
  auto gone = stage.started();
  std::string pid = gone->self();
  gone->kill();
  CHECK(caller->ask("lock " + plain->self() + " 10") == "error 3");
  CHECK(caller->ask("state " + plain->self()) == "error 3");
  CHECK(caller->ask("state " + pid) == "error 1");
  CHECK(caller->ask("lock 0 10") == "error 1");
  CHECK(caller->ask("lock -1 10") == "error 1");
}

TEST_CASE("a killed process's memory is free, whatever its state was", "[simgpu]") {
  auto upTo = GENERATE(0, 1, 2, 3, 4);
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("pattern " + job->value("alloc " + bytes(8 * kMiB)) + " " + bytes(8 * kMiB) + " 1");
  const char* steps[] = {"lock ", "checkpoint ", "restore ", "unlock "};
  for (int i = 0; i < upTo; ++i) caller->value(steps[i] + job->self());
  job->kill();
  CHECK(caller->value("nvml-memory 0") == bytes(64 * kMiB) + " 0 " + bytes(64 * kMiB));
  CHECK(caller->value("nvml-processes 0").empty());
  auto next = stage.started();
  std::string at = next->value("alloc " + bytes(64 * kMiB));
  CHECK(next->value("all-are " + at + " " + bytes(64 * kMiB) + " 0") == "yes");
}

TEST_CASE("a target killed in mid-call is reported to the caller", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("hang.checkpoint", "yes");
  caller->value("lock " + job->self() + " 0");
  caller->say("checkpoint " + job->self());
  while (stage.trace().find("begin checkpoint") == std::string::npos) std::this_thread::yield();
  job->kill();
  CHECK(caller->hear() == "error 304");
}

TEST_CASE("a caller killed in mid-call leaves the call to end by itself", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + bytes(8 * kMiB));
  stage.set("hang.checkpoint", "yes");
  caller->value("lock " + job->self() + " 0");
  caller->say("checkpoint " + job->self());
  while (stage.trace().find("begin checkpoint") == std::string::npos) std::this_thread::yield();
  caller->kill();
  stage.set("hang.checkpoint", "no");
  auto second = stage.actor();
  CHECK(second->ask("restore " + job->self()) == "ok");  // waits for the checkpoint before it
  CHECK(second->ask("unlock " + job->self()) == "ok");
  CHECK(stage.card().usedBytes() == 8 * kMiB);
}

TEST_CASE("the trace tells who called what on whom, when, and how it ended", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  caller->value("lock " + job->self() + " 0");
  caller->ask("restore " + job->self());
  std::string who = " pid=" + job->self() + " caller=" + caller->self();
  std::string trace = stage.trace();
  CHECK(trace.find(" begin lock" + who + "\n") != std::string::npos);
  CHECK(trace.find(" end lock" + who + " code=0\n") != std::string::npos);
  CHECK(trace.find(" end restore" + who + " code=401\n") != std::string::npos);
}
