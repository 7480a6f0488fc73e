#include "cli/turn.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

std::string jobName(const Options& options) {
  if (!options.job.empty()) return options.job;
  std::string program = options.program.front();
  return program.substr(program.rfind('/') + 1).substr(0, 40) + "." + std::to_string(::getpid());
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
    case TS_ERR_SHUTDOWN: return Exit::Unreachable;
    case TS_ERR_INVALID: return Exit::Usage;
    default: return Exit::Failed;
  }
}

void check(ts_status status, const char* what) {
  if (status == TS_OK) return;
  throw Failure(exitFor(status), std::string("cannot ") + what + ": " + ts_strerror(status) + ": " +
                                     ts_last_error());
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
  check(ts_join(&how, &client), "join");  // the rest comes from the environment
  return Client(client);
}

void acquire(ts_client* client, const Options& options) {
  ts_acquire_options how{};
  how.size = sizeof how;
  if (options.deadline) how.deadline_ms = options.deadline->count() / 1000 + 1;
  how.phase = options.phase.c_str();
  ts_grant grant{};
  grant.size = sizeof grant;
  check(ts_acquire(client, &how, &grant), "acquire");
  std::fprintf(stderr, "tsctl: slice %u.%llu begins, waited %s\n", grant.generation,
               static_cast<unsigned long long>(grant.epoch), showDuration(grant.waited_us).c_str());
}

volatile pid_t child = 0;

// The program is to end as if it had been signalled itself; the turn is given back when it has.
void forward(int signal) {
  if (child > 0) ::kill(child, signal);
}

void forwardSignals() {
  struct sigaction action {};
  action.sa_handler = forward;
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(signal, &action, nullptr);
}

int waitForChild() {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int spawnAndWait(const Options& options) {
  auto arguments = argumentsOf(options);
  pid_t pid = 0;
  forwardSignals();
  int error = ::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (error != 0) throw cannotStart(options, error);
  child = pid;
  return waitForChild();
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
  check(ts_yield(client.get()), "yield");
  return code;
}

}  // namespace ts::cli
