// One card: its memory, its link, its compute unit and its control file.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simgpu/settings.h"
#include "simgpu/shared_state.h"

namespace simgpu {

struct Extent {
  std::uint64_t offset;  // in the card's memory file
  std::uint64_t bytes;
};
using Extents = std::vector<Extent>;

enum class Direction { HostToDevice, DeviceToHost };

class Card {
public:
  // The error says which file, and what is wrong with it.
  static std::unique_ptr<Card> open(const std::string& dir, unsigned index, std::string& error);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  unsigned index() const { return index_; }
  // As they are for this process, or for another.
  std::shared_ptr<const Settings> settings() { return settingsOf(::getpid()); }
  std::shared_ptr<const Settings> settingsOf(pid_t pid) { return control_.read(pid); }
  std::uint64_t totalBytes() const { return state_->granules * kGranule; }
  std::uint64_t usedBytes() const { return state_->usedGranules * kGranule; }
  std::uint64_t freeBytes() const { return totalBytes() - usedBytes(); }
  std::string busId() const;
  int memoryFd() const { return memoryFd_; }

  // These four are called with the host's lock held. Memory given back has been discarded before,
  // so that whoever takes it next finds zeroes.
  std::optional<Extents> take(unsigned slot, std::uint64_t bytes);
  void giveBack(const Extents& extents);
  void giveBackAllOf(unsigned slot);

  void discard(const Extent& extent);  // the bytes are gone and the pages free

  // Moves bytes over the link in steps, at the modelled rate that all processes share.
  void transfer(Direction direction, std::uint64_t bytes,
                const std::function<void(std::uint64_t offset, std::uint64_t bytes)>& step);

  // Runs a kernel that could have begun at `readyNs`, alone on the card. Sleeps for what the
  // modelled duration is longer than the run; says when the kernel ended, as modelled.
  std::uint64_t compute(std::uint64_t readyNs, std::uint64_t modelledNs,
                        const std::function<void()>& run);
  double busySeconds() const { return static_cast<double>(state_->busyNs) * 1e-9; }
  unsigned utilization() const;  // percent, of the last whole second

private:
  Card(std::string dir, unsigned index);
  std::optional<Extent> takeRun(unsigned slot, std::uint64_t count);
  void mark(std::uint64_t first, std::uint64_t count, std::uint16_t owner);
  void addBusy(std::uint64_t ns, std::uint64_t endNs);

  std::string dir_;
  unsigned index_;
  ControlFile control_;
  CardState* state_ = nullptr;
  std::uint16_t* owner_ = nullptr;
  std::size_t stateBytes_ = 0;
  int memoryFd_ = -1;
};

// Makes the files of one card. The error says what could not be made.
std::optional<std::string> createCard(const std::string& dir, const std::string& settings);

}  // namespace simgpu
