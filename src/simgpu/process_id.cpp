#include "simgpu/process_id.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace simgpu {
namespace {

std::string readProc(pid_t pid, const char* file) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[4096];
  ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

// Field n of /proc/PID/stat, counted from 3: the first after the name, which may hold anything.
const char* statField(const std::string& stat, int n) {
  std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return nullptr;
  const char* p = stat.c_str() + at + 1;
  for (int field = 3; p != nullptr; ++field) {
    while (*p == ' ') ++p;
    if (field == n) return p;
    p = std::strchr(p, ' ');
  }
  return nullptr;
}

}  // namespace

std::optional<std::uint64_t> startTimeOf(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  std::string stat = readProc(pid, "stat");
  const char* state = statField(stat, 3);
  const char* threads = statField(stat, 20);
  const char* start = statField(stat, 22);
  if (state == nullptr || threads == nullptr || start == nullptr) return std::nullopt;
  // A leader that ended before its threads is a zombie too, and its process lives.
  bool gone = *state == 'X' || (*state == 'Z' && std::atoi(threads) <= 1);
  if (gone) return std::nullopt;
  return std::strtoull(start, nullptr, 10);
}

std::optional<pid_t> processOfThread(pid_t tid) {
  if (tid <= 0) return std::nullopt;
  std::string status = readProc(tid, "status");
  std::size_t at = status.find("\nTgid:");
  if (at == std::string::npos) return std::nullopt;
  return std::atoi(status.c_str() + at + 6);
}

std::uint64_t nowNs() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

void sleepUntilNs(std::uint64_t deadline) {
  timespec t{static_cast<time_t>(deadline / 1'000'000'000u),
             static_cast<long>(deadline % 1'000'000'000u)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

void sleepNs(std::uint64_t duration) {
  sleepUntilNs(nowNs() + duration);
}

}  // namespace simgpu
