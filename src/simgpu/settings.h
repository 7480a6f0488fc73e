// What a card is and how it misbehaves: `key = value` lines in its control file, which may change
// while programs run.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace simgpu {

enum class TraceLevel { Off, Checkpoint, All };

// A knob "fail.CALL = CODE [after] [on N]": every call, or the N-th since it was set, fails before
// it does anything, or, with `after`, when it has done all: its answer is lost.
struct FailKnob {
  int code = 0;
  bool after = false;
  std::uint64_t onCall = 0;  // 0: every one
  bool operator==(const FailKnob&) const = default;
};

// How a driver deals with a feature that a process can use.
enum class Feature {
  Off,         // its entry points are refused
  On,          // it is saved and restored like anything else
  Unsupported  // it can be used and saved; a process that has used it cannot be restored
};

// When a target is to die: as a call on it begins, or when its answer has been taken.
enum class Crash { Never, Before, After };

struct Settings {
  std::uint64_t bytes = 0;
  std::string name = "Simulated GPU";
  std::string uuid;
  std::string driverVersion = "580.95.05";
  std::uint64_t h2dRate = 0;  // bytes per second; 0: as fast as memory is
  std::uint64_t d2hRate = 0;
  std::uint64_t lockNs = 0;  // fixed time of each checkpoint call
  std::uint64_t saveNs = 0;
  std::uint64_t restoreNs = 0;
  std::uint64_t unlockNs = 0;
  std::uint64_t contextBytes = 0;  // device memory that a context takes by itself
  TraceLevel trace = TraceLevel::Checkpoint;
  bool persistenceMode = true;
  bool stickyRestoreOom = false;  // after a restore without room: 304 and 401 for ever
  bool lockTimesOut = false;      // the device work of the target never drains
  bool noContext = false;         // a lock finds nothing to lock: an initialization error
  bool strands = false;  // a caller that dies in mid-call leaves its target locked, nothing moved
  bool mig = false;      // the card is partitioned: checkpoints answer out of memory
  bool unsafeTeardown = false;  // the death of a restored, running process is traced as `host-hung`
  std::uint64_t releaseDelayNs = 0;  // device memory stays held so long after a checkpoint
  int cudaVersion = 13000;
  std::optional<int> driverState;    // what the driver says of a process, whatever is true
  std::string listed;                // how NVML lists a process: "no", "N/A", bytes; empty: truly
  std::vector<std::set<int>> peers;  // sets of processes that can only be checkpointed together

  Feature ipc = Feature::Off;  // On: with a driver of 610 or newer, else as Unsupported
  Feature uvm = Feature::On;
  Feature nvls = Feature::Off;
  Feature mps = Feature::Off;  // On: the process is listed as a client; no call can save one

  // What the machine gives; nothing: no limit. Beyond it a call is out of memory.
  std::optional<std::uint64_t> hostMemory;    // saved and pinned bytes of one process
  std::optional<std::uint64_t> lockedMemory;  // pinned bytes of one process
  std::optional<std::uint64_t> store;         // saved bytes of all processes
  std::optional<std::uint64_t> mappings;      // allocations of one process

  // Per call. The four checkpoint calls are called lock, checkpoint, restore and unlock, the
  // question for a process's state is called state; all others have the driver's name.
  std::map<std::string, std::uint64_t, std::less<>> delayNs;
  std::map<std::string, bool, std::less<>> hang;
  std::map<std::string, FailKnob, std::less<>> fail;
  std::map<std::string, Crash, std::less<>> crash;
  bool anyKnob() const {
    return !delayNs.empty() || !hang.empty() || !fail.empty() || !crash.empty();
  }

  // Of single processes, whose lines "KEY@PID = VALUE" come on top of what holds for all.
  std::map<int, std::shared_ptr<const Settings>> ofProcess;
};

// The error names the line, the key and what is allowed.
std::variant<Settings, std::string> parseSettings(std::string_view text);

// The settings of one card, read again when the file has changed. Safe from any thread.
class ControlFile {
public:
  explicit ControlFile(std::string path) : path_(std::move(path)) {}
  std::shared_ptr<const Settings> read(int pid);  // as they are for this process
  const std::string& path() const { return path_; }

private:
  bool changed();
  void load();

  std::string path_;
  std::mutex mutex_;
  struct stat seen_ = {};
  std::shared_ptr<const Settings> settings_ = std::make_shared<Settings>();
};

std::string fileText(const std::string& path);

// Sets one key of a control file, in place of its old line; an empty value removes it.
std::optional<std::string> setKey(const std::string& path, const std::string& key,
                                  const std::string& value);

}  // namespace simgpu
