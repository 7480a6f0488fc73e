#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/sched.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "simgpu/stage.h"

using namespace simgpu_test;

namespace {

std::string bytes(std::uint64_t n) {
  return std::to_string(n);
}

void awaitTrace(const Stage& stage, const std::string& what) {
  while (stage.trace().find(what) == std::string::npos) std::this_thread::yield();
}

// A process with the number that we want; nothing: the kernel does not let us choose.
pid_t forkAs(pid_t number) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.set_tid = reinterpret_cast<std::uint64_t>(&number);
  args.set_tid_size = 1;
  auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
  if (pid == 0) {
    for (;;) ::pause();
  }
  return pid;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// As /proc has it, in clock ticks: the 20th word behind the name.
std::string startOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream words(text.substr(text.rfind(')') + 1));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  return word;
}

}  // namespace

TEST_CASE("any key may be set for one process, on top of what holds for all", "[simgpu]") {
  auto parsed = simgpu::parseSettings("save = 5 ms\nsave@12 = 1 s\nlock_times_out@12 = yes\n");
  REQUIRE(std::holds_alternative<simgpu::Settings>(parsed));
  const auto& settings = std::get<simgpu::Settings>(parsed);
  CHECK(settings.saveNs == 5'000'000);
  CHECK(settings.ofProcess.at(12)->saveNs == 1'000'000'000);
  CHECK(settings.ofProcess.at(12)->lockTimesOut);
  parsed = simgpu::parseSettings("\nsave@none = 1 s\n");
  CHECK(std::get<std::string>(parsed) ==
        "line 2: 'save@none' does not end in the pid of a process");
}

TEST_CASE("a call on one process is slower than on another by what its knob says", "[simgpu]") {
  Stage stage;
  auto slow = stage.started();
  auto fast = stage.started();
  auto caller = stage.actor();
  auto second = stage.actor();
  stage.set("hang.lock@" + slow->self(), "yes");
  caller->say("lock " + slow->self() + " 0");
  awaitTrace(stage, "begin lock pid=" + slow->self());
  CHECK(second->ask("lock " + fast->self() + " 0") == "ok");
  stage.set("hang.lock@" + slow->self(), "");
  CHECK(caller->hear() == "ok");
}

TEST_CASE("a restore can be made to run out of memory, also for good", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  caller->value("lock " + job->self() + " 0");
  caller->value("checkpoint " + job->self());
  stage.set("fail.restore@" + job->self(), "2 on 1");
  CHECK(caller->ask("restore " + job->self()) == "error 2");
  CHECK(caller->ask("restore " + job->self()) == "ok");
  caller->value("checkpoint " + job->self());
  stage.set("fail.restore@" + job->self(), "2");
  stage.set("sticky_restore_oom", "yes");
  CHECK(caller->ask("restore " + job->self()) == "error 2");
  stage.set("fail.restore@" + job->self(), "");
  CHECK(caller->ask("restore " + job->self()) == "error 304");
}

TEST_CASE("a process in a state of the knob's choice is what the driver says it is", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("state@" + job->self(), "3");
  CHECK(caller->ask("state " + job->self()) == "ok 3");
  stage.set("state@" + job->self(), "4");
  CHECK(caller->ask("state " + job->self()) == "ok 4");
  stage.set("state@" + job->self(), "");
  CHECK(caller->ask("state " + job->self()) == "ok 0");
}

TEST_CASE("a question for a state may hang or fail", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  stage.set("fail.state@" + job->self(), "999");
  CHECK(caller->ask("state " + job->self()) == "error 999");
  stage.set("fail.state@" + job->self(), "");
  stage.set("trace", "all");
  stage.set("hang.state", "yes");
  caller->say("state " + job->self());
  awaitTrace(stage, "begin state");
  stage.set("hang.state", "");
  CHECK(caller->hear() == "ok 0");
}

TEST_CASE("a process without a context cannot be locked, and is listed all the same", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto plain = stage.actor();  // never calls the driver
  auto caller = stage.actor();
  stage.set("no_context@" + job->self(), "yes");
  CHECK(caller->ask("lock " + job->self() + " 10") == "error 3");
  CHECK(caller->ask("state " + job->self()) == "ok 0");
  stage.set("listed@" + job->self(), "N/A");
  CHECK(caller->value("nvml-processes 0") == job->self() + ":18446744073709551615");
  stage.set("listed@" + job->self(), "no");
  stage.set("listed@" + plain->self(), "0");
  CHECK(caller->value("nvml-processes 0") == plain->self() + ":0");
}

TEST_CASE("a caller that dies in mid-call may leave its target locked, with nothing moved",
          "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + bytes(8 * kMiB));
  stage.set("strands", "yes");
  stage.set("hang.checkpoint", "yes");
  caller->value("lock " + job->self() + " 0");
  caller->say("checkpoint " + job->self());
  awaitTrace(stage, "begin checkpoint");
  caller->kill();
  stage.set("hang.checkpoint", "");
  auto second = stage.actor();
  // Waits for the call before it; then the process is not what that call would have made of it.
  CHECK(second->ask("restore " + job->self()) == "error 401");
  CHECK(second->ask("state " + job->self()) == "ok 1");
  CHECK(stage.card().usedBytes() == 8 * kMiB);
  CHECK(second->ask("unlock " + job->self()) == "ok");
  CHECK(job->ask("alloc 65536").starts_with("ok"));
}

TEST_CASE("a target may die between two calls", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + bytes(8 * kMiB));
  stage.set("crash.checkpoint", "after");
  caller->value("lock " + job->self() + " 0");
  CHECK(caller->ask("checkpoint " + job->self()) == "ok");
  CHECK(job->hear() == "gone");
  CHECK(caller->ask("restore " + job->self()).starts_with("error"));
}

TEST_CASE("a process may die in a call of its own", "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  stage.set("crash.cuMemAlloc@" + job->self(), "before");
  CHECK(job->ask("alloc 65536") == "gone");
}

TEST_CASE("the number of a process that has died may be taken by another, who inherits nothing",
          "[simgpu]") {
  Stage stage;
  auto job = stage.started();
  auto caller = stage.actor();
  job->value("alloc " + bytes(8 * kMiB));
  pid_t number = job->pid();
  const std::string started = startOf(number);
  job->kill();
  pid_t next = forkAs(number);
  while (next > 0 &&
         startOf(next) == started) {  // in one tick of the clock nobody tells them apart
    end(next);
    next = forkAs(number);
  }
  if (next < 0) {
    WARN("the kernel does not let this user choose a pid");
    return;
  }
  CHECK(caller->ask("state " + std::to_string(number)) == "error 3");
  CHECK(caller->value("nvml-processes 0").empty());
  end(next);
}

TEST_CASE("there may be several sets of peers", "[simgpu]") {
  Stage stage;
  auto a = stage.started();
  auto b = stage.started();
  auto lone = stage.started();
  auto caller = stage.actor();
  stage.set("peers", a->self() + " " + b->self() + "; " + lone->self());
  caller->value("lock " + lone->self() + " 0");
  CHECK(caller->ask("checkpoint " + lone->self()) == "ok");
  caller->value("lock " + a->self() + " 0");
  caller->say("checkpoint " + a->self());
  auto second = stage.actor();
  second->value("lock " + b->self() + " 0");
  CHECK(caller->hear() == "ok");
}
