#include "scontrol/program_output.h"

#include <csignal>

#include <catch2/catch.hpp>

using namespace ts;
using namespace std::chrono_literals;

TEST_CASE("what a program says on both streams is kept, however much it is", "[scontrol]") {
  auto said = outputOf({"sh", "-c", "printf %0200000d 7; echo wrong >&2; exit 3"}, 60s);
  CHECK(said.why.empty());
  CHECK(said.exit == 3);
  CHECK(said.out.size() == 200'000);
  CHECK(said.err == "wrong\n");
}

TEST_CASE("a program speaks English, and reads nothing of ours", "[scontrol]") {
  CHECK(outputOf({"sh", "-c", "echo $LC_ALL; cat"}, 60s).out == "C\n");
}

TEST_CASE("a program blocks and ignores no signal, whoever starts it", "[scontrol]") {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto pipe = ::signal(SIGPIPE, SIG_IGN);
  auto stopped = outputOf({"sh", "-c", "kill -TERM $$"}, 60s);
  auto broken = outputOf({"sh", "-c", "kill -PIPE $$"}, 60s);
  ::signal(SIGPIPE, pipe);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(stopped.exit == 128 + SIGTERM);
  CHECK(broken.exit == 128 + SIGPIPE);
}

TEST_CASE("a program finds variables that are meant for it, once", "[scontrol]") {
  auto said =
      outputOf({"sh", "-c", "echo $SLURM_CONF $PATH"}, 60s, {"SLURM_CONF=here", "PATH=/bin"});
  CHECK(said.out == "here /bin\n");
}

TEST_CASE("a program does not find how whoever started us likes Slurm's answers", "[scontrol]") {
  ::setenv("SQUEUE_USERS", "nobody", 1);
  ::setenv("SLURM_CLUSTERS", "far", 1);
  ::setenv("SLURM_CONF", "here", 1);
  auto said = outputOf({"sh", "-c", "echo $SQUEUE_USERS$SLURM_CLUSTERS$SLURM_CONF"}, 60s);
  for (const char* name : {"SQUEUE_USERS", "SLURM_CLUSTERS", "SLURM_CONF"}) ::unsetenv(name);
  CHECK(said.out == "here\n");
}

TEST_CASE("a program that is not there, or is killed, is told", "[scontrol]") {
  CHECK(outputOf({"timeslice-no-such-program"}, 60s).why == "No such file or directory");
  CHECK(outputOf({"sh", "-c", "kill -9 $$"}, 60s).exit == 128 + 9);
}

TEST_CASE("a program that does not end is ended in time", "[scontrol]") {
  auto said = outputOf({"sh", "-c", "echo here; exec sleep infinity"}, 200ms);
  CHECK(said.why == "no answer within 200 ms");
  CHECK(said.exit == 128 + 9);
}
