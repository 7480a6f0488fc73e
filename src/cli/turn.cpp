#include "cli/turn.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "cli/node.h"
#include "cli/words.h"
#include "timeslice/timeslice.h"

extern char** environ;

namespace ts::cli {
namespace {

// What may stand in a job's name of that of its program.
std::string nameFrom(const std::string& program) {
  std::string name = program.substr(program.rfind('/') + 1).substr(0, 40);
  for (char& c : name) {
    bool fits = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    if (!fits) c = '_';
  }
  return name;
}

std::string jobName(const Options& options) {
  if (!options.job.empty()) return options.job;
  return nameFrom(options.program.front()) + "." + std::to_string(::getpid());
}

void put(const char* name, const std::string& value) {
  if (!value.empty()) ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

void putNumber(const char* name, long value) {
  if (value != 0) put(name, std::to_string(value));
}

// What libtimeslice reads in the program and in all that it starts.
void setEnvironment(const Places& places, const Options& options) {
  put("TIMESLICE_SOCKET", places.node.address);
  put("TIMESLICE_GROUP", options.group);
  put("TIMESLICE_JOB", jobName(options));
  put("TIMESLICE_DEVICES", options.devices);
  put("TIMESLICE_BACKEND", options.backend);
  putNumber("TIMESLICE_GANG", options.gang);
  putNumber("TIMESLICE_PRIORITY", options.priority);
}

std::vector<char*> argumentsOf(const Options& options) {
  std::vector<char*> all;
  for (const std::string& word : options.program) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

Failure cannotStart(const Options& options, int error) {
  return Failure(Exit::Failed, "cannot start " + options.program.front() + ": " +
                                   std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
}

Exit exitFor(ts_status status) {
  switch (status) {
    case TS_ERR_UNAVAILABLE:
    case TS_ERR_MASTER_DOWN:
    case TS_ERR_SHUTDOWN:
      return Exit::Unreachable;
    case TS_ERR_INVALID:
      return Exit::Usage;
    default:
      return Exit::Failed;
  }
}

// The library's sentence names the call, the group and the code.
void check(ts_status status, Exit exit) {
  if (status != TS_OK) throw Failure(exit, ts_last_error());
}

void check(ts_status status) {
  check(status, exitFor(status));
}

struct Leave {
  void operator()(ts_client* client) const { ts_leave(client); }
};
using Client = std::unique_ptr<ts_client, Leave>;

Client join(const Options& options) {
  ts_join_options how{};
  how.size = sizeof how;
  how.deadline_ms = options.timeout.count() / 1000 + 1;
  ts_client* client = nullptr;
  ts_status status = ts_join(&how, &client);  // the rest comes from the environment
  // Nobody is waited for in a join: when its time is over, a daemon is silent.
  check(status, status == TS_ERR_TIMED_OUT ? Exit::Unreachable : exitFor(status));
  return Client(client);
}

void acquire(ts_client* client, const Options& options) {
  ts_acquire_options how{};
  how.size = sizeof how;
  if (options.deadline) how.deadline_ms = options.deadline->count() / 1000 + 1;
  how.phase = options.phase.c_str();
  ts_grant grant{};
  grant.size = sizeof grant;
  check(ts_acquire(client, &how, &grant));
  std::fprintf(stderr, "tsctl: slice %u.%llu begins, waited %s\n", grant.generation,
               static_cast<unsigned long long>(grant.epoch), showDuration(grant.waited_us).c_str());
}

volatile pid_t child = 0;

// The program is to end as if it had been signalled itself; the turn is given back when it has.
void forward(int signal) {
  if (child > 0) ::kill(child, signal);
}

sigset_t forwarded() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, signal);
  return set;
}

// What nohup and its like have us ignore stays ignored, in the program as well.
void forwardSignals() {
  struct sigaction action {
  }, before{};
  action.sa_handler = forward;
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  action.sa_handler =
      SIG_DFL;  // whoever ignores it, as a parent may have had us do, loses exit codes
  ::sigaction(SIGCHLD, &action, nullptr);
}

int waitForChild(const Options& options) {
  int status = 0;
  pid_t ended;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  int error = errno;
  child = 0;
  if (ended < 0) {
    throw Failure(Exit::Failed, "how " + options.program.front() +
                                    " ended cannot be known: waitpid: " +
                                    std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// The program starts with the signals that we had before we blocked some.
int spawn(pid_t& pid, std::vector<char*>& arguments, const sigset_t& mask) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = ::posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

int spawnAndWait(const Options& options) {
  auto arguments = argumentsOf(options);
  pid_t pid = 0;
  sigset_t before;
  sigset_t block = forwarded();
  forwardSignals();
  ::sigprocmask(SIG_BLOCK, &block, &before);  // until it is known whom to pass them on to
  int error = spawn(pid, arguments, before);
  child = pid;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) throw cannotStart(options, error);
  return waitForChild(options);
}

}  // namespace

void runProgram(const Places& places, const Options& options) {
  { Node reachable(places.node, options.timeout); }  // a program that finds nobody would say less
  setEnvironment(places, options);
  auto arguments = argumentsOf(options);
  ::execvp(arguments[0], arguments.data());
  throw cannotStart(options, errno);
}

int sliceProgram(const Places& places, const Options& options) {
  setEnvironment(places, options);
  Client client = join(options);
  acquire(client.get(), options);
  int code = spawnAndWait(options);
  check(ts_yield(client.get()));
  return code;
}

}  // namespace ts::cli
