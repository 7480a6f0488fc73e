// Processes of a bench: each ends with the bench at the latest, and none is left behind.
#pragma once

#include <sys/types.h>

#include <functional>
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
  void end();  // SIGTERM, and waits for it

private:
  pid_t pid_ = -1;
};

// Resident memory, and the CPU time that all its threads have used.
std::uint64_t residentBytes(pid_t pid);
double cpuSeconds(pid_t pid);

// For us and for those we start: as many descriptors as the system lets us have, and files in memory, as
// a node has its journal under /run.
void prepareProcess();

[[noreturn]] void die(const std::string& what);

}  // namespace ts::bench
