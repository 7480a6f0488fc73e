#include "scontrol/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

extern char** environ;

namespace ts {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool ok() const { return ends[0] >= 0; }
  void close(std::size_t which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
};

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// By which people tell Slurm's commands what to leave out, or another cluster to ask.
bool isTaste(std::string_view name) {
  return name.starts_with("SQUEUE_") || (name.starts_with("SLURM_") && name != "SLURM_CONF=");
}

// Ours, but for those that are given: of two with one name a program finds either.
std::vector<std::string> environmentWith(std::vector<std::string> variables) {
  variables.emplace_back("LC_ALL=C");
  auto given = variables;
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view name(*each, std::strcspn(*each, "=") + 1);
    if (isTaste(name)) continue;
    if (std::ranges::none_of(given, [&](const auto& g) { return g.starts_with(name); }))
      variables.emplace_back(*each);
  }
  return variables;
}

std::string inWords(std::chrono::microseconds time) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

// Workers of ours block signals, and a daemon ignores broken pipes.
void asFromAShell(posix_spawnattr_t& attributes) {
  sigset_t none, pipe;
  ::sigemptyset(&none);
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

// 0 or an error number.
int start(std::vector<std::string> words, std::vector<std::string> variables, const Pipe& out,
          const Pipe& err, pid_t& child) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
  posix_spawnattr_t attributes;
  asFromAShell(attributes);
  int error = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes,
                             pointersTo(words).data(), pointersTo(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

// False at the end of what it says.
bool readSome(Pipe& from, std::string& to) {
  std::array<char, 4096> buffer;
  auto n = ::read(from.ends[0], buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) from.close(0);
  if (n > 0) to.append(buffer.data(), std::size_t(n));
  return n > 0;
}

// Until both ends are closed. False: not in time.
bool listen(Pipe& out, Pipe& err, ProgramOutput& said, Clock::time_point until) {
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    std::array<pollfd, 2> ready{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
    int count = left <= 0 ? 0 : ::poll(ready.data(), ready.size(), int(std::min(left, 60'000L)));
    if (count == 0 && Clock::now() >= until) return false;
    if (count <= 0) continue;
    if (ready[0].revents != 0) readSome(out, said.out);
    if (ready[1].revents != 0) readSome(err, said.err);
  }
  return true;
}

int waitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProgramOutput outputOf(const std::vector<std::string>& words, std::chrono::microseconds timeout,
                       const std::vector<std::string>& more) {
  ProgramOutput said;
  Pipe out, err;
  pid_t child = 0;
  int error = out.ok() && err.ok() ? start(words, environmentWith(more), out, err, child) : errno;
  if (error != 0) {
    said.why = std::strerror(error);
    return said;
  }
  out.close(1);
  err.close(1);
  if (!listen(out, err, said, Clock::now() + timeout)) {
    ::kill(child, SIGKILL);
    said.why = "no answer within " + inWords(timeout);
  }
  said.exit = waitFor(child);
  return said;
}

}  // namespace ts
