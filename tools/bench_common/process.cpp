#include "bench_common/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

namespace ts::bench {

namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t caught = 0;

void setHandlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // no SA_RESTART: a wait is to end
  for (int number : kEnding) ::sigaction(number, &action, nullptr);
}

// In the child: never back into what the parent was doing.
[[noreturn]] void live(const std::function<void()>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  setHandlers(SIG_DFL);
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

// Whether `fd` can be read within the time, whatever signals come.
bool readableWithin(int fd, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd asked{fd, POLLIN, 0};
    const int ready = ::poll(&asked, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) die(std::string("poll: ") + std::strerror(errno));
  }
}

}  // namespace

void die(const std::string& what) {
  throw Failed(what);
}

void catchSignals() {
  setHandlers([](int number) { caught = number; });
}

int signalled() {
  return caught;
}

void goOn() {
  if (caught != 0) die(std::string("ended by ") + ::strsignal(caught));
}

void untilReadable(int fd, const std::string& what) {
  goOn();
  pollfd asked{fd, POLLIN, 0};
  const std::chrono::milliseconds patience = kPatience;
  const int ready = ::poll(&asked, 1, static_cast<int>(patience.count()));
  goOn();
  if (ready == 0)
    die(what + " has not happened within " + std::to_string(kPatience.count()) + " s");
  if (ready < 0) die(what + ": poll: " + std::strerror(errno));
}

Process::Process(const std::function<void()>& body) : pid_(::fork()) {
  if (pid_ < 0) die(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) live(body);
}

Process::Process(const std::vector<std::string>& command, const std::string& logFile)
    : Process([&] {
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        const int log = ::open(logFile.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
        ::dup2(log, 2);
        ::execv(argv[0], argv.data());
        ::_exit(127);
      }) {}

Process::~Process() {
  if (pid_ > 0) end();
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

void Process::end() {
  const int life = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  ::kill(pid_, SIGTERM);
  if (life < 0 || !readableWithin(life, std::chrono::seconds(10))) ::kill(pid_, SIGKILL);
  if (life >= 0) ::close(life);
  wait();
}

void Process::kill() {
  ::kill(pid_, SIGKILL);
  wait();
}

void Process::wait() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::uint64_t residentBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib * 1024;
  }
  return 0;
}

double cpuSeconds(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/schedstat");
  double ns = 0;
  stat >> ns;
  return ns / 1e9;
}

void prepareProcess() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
}

}  // namespace ts::bench
