// Processes of a bench: each ends with the bench at the latest, and none is left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ts::bench {

class Process {
public:
  Process() = default;
  // Runs `body` in a child.
  explicit Process(const std::function<void()>& body);
  // Runs a program; what it says on stderr goes to `logFile`.
  Process(const std::vector<std::string>& command, const std::string& logFile);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  void end();   // SIGTERM, ten seconds later SIGKILL; returns when it is gone
  void kill();  // SIGKILL; returns when it is gone

private:
  void wait();

  pid_t pid_ = -1;
};

// Resident memory, and the CPU time that all its threads have used.
std::uint64_t residentBytes(pid_t pid);
double cpuSeconds(pid_t pid);

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void die(const std::string& what);  // throws it

// How long something takes that takes no time while all is well.
constexpr auto kPatience = std::chrono::seconds(30);

// For us and for those we start: as many descriptors as the system lets us have, and files in
// memory, as a node has its journal under /run.
void prepareProcess();

// From now on SIGINT, SIGTERM and SIGHUP break off what waits instead of ending us: goOn() throws
// then, and what is unwound ends its processes and removes its files. Zero or the signal that has
// come is signalled().
void catchSignals();
void goOn();
int signalled();

// Until `fd` can be read; throws after kPatience: `what` has not happened.
void untilReadable(int fd, const std::string& what);

}  // namespace ts::bench
