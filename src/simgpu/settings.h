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

namespace simgpu {

enum class TraceLevel { Off, Checkpoint, All };

// A knob "fail.CALL = CODE [after] [on N]": every call, or the N-th since it was set, fails before
// it does anything, or, with `after`, when it has done all: its answer is lost.
struct FailKnob {
  int code = 0;
  bool after = false;
  std::uint64_t onCall = 0;  // 0: every one
};

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
  bool lockCrashes = false;       // a lock kills its target
  bool mig = false;               // NVML says that the card is partitioned
  bool unsafeTeardown = false;  // the death of a restored, running process is traced as `host-hung`
  std::uint64_t releaseDelayNs = 0;  // device memory stays held so long after a checkpoint
  int cudaVersion = 13000;
  std::set<int> peers;  // processes that can only be checkpointed together

  // Per call, and per call and process as "CALL@PID". The four checkpoint calls are called lock,
  // checkpoint, restore and unlock; all others by the driver's name.
  std::map<std::string, std::uint64_t, std::less<>> delayNs;
  std::map<std::string, bool, std::less<>> hang;
  std::map<std::string, FailKnob, std::less<>> fail;
  bool anyKnob() const { return !delayNs.empty() || !hang.empty() || !fail.empty(); }
};

// The error names the line, the key and what is allowed.
std::variant<Settings, std::string> parseSettings(std::string_view text);

// The settings of one card, read again when the file has changed. Safe from any thread.
class ControlFile {
public:
  explicit ControlFile(std::string path) : path_(std::move(path)) {}
  std::shared_ptr<const Settings> read();
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
