// The machine that the cards are in: who uses them, and the memory of those who died.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/card.h"
#include "simgpu/shared_state.h"

namespace simgpu {

std::uint64_t bytesIn(const Extents& extents);

class Host {
public:
  // The cards of $SIMGPU_CARDS. The error is for a person.
  static std::unique_ptr<Host> openFromEnvironment(std::string& error);
  static std::unique_ptr<Host> open(const std::string& dir, std::string& error);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const std::string& dir() const { return dir_; }
  unsigned cardCount() const { return static_cast<unsigned>(cards_.size()); }
  Card& card(unsigned index) { return *cards_[index]; }
  ProcessSlot& slot(unsigned index) { return state_->processes[index]; }

  // A slot for this process; nothing when all are taken.
  std::optional<unsigned> enlist();
  // The slot of a living process that uses CUDA.
  std::optional<unsigned> find(pid_t pid);
  bool lives(unsigned slot);

  // Frees what dead processes held. Looking is cheap when nobody died.
  void reclaim();

  // Device memory for a slot: all of it or nothing. Reclaims before it says no.
  std::optional<Extents> take(unsigned slot, unsigned card, std::uint64_t bytes);
  void giveBack(unsigned slot, unsigned card, const Extents& extents);

  std::uint64_t savedBytes();  // of all processes

  // Appends a line to DIR/trace: "SECONDS WHAT".
  void trace(std::string_view what);

private:
  explicit Host(std::string dir) : dir_(std::move(dir)) {}
  bool openAll(std::string& error);
  void reclaimLocked();
  void reclaimSlot(unsigned index);
  void noteTeardown(const ProcessSlot& slot);

  std::string dir_;
  HostState* state_ = nullptr;
  std::size_t stateBytes_ = 0;
  int traceFd_ = -1;
  std::vector<std::unique_ptr<Card>> cards_;
};

// Makes DIR with one card per settings text.
std::optional<std::string> createHost(const std::string& dir,
                                      const std::vector<std::string>& cards);

}  // namespace simgpu
