#include "simgpu/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "simgpu/mapped_file.h"
#include "simgpu/process_id.h"

namespace simgpu {

std::uint64_t bytesIn(const Extents& extents) {
  std::uint64_t all = 0;
  for (const Extent& e : extents) all += e.bytes;
  return all;
}

std::unique_ptr<Host> Host::openFromEnvironment(std::string& error) {
  const char* dir = ::getenv("SIMGPU_CARDS");
  if (dir != nullptr && *dir != '\0') return open(dir, error);
  error = "SIMGPU_CARDS is not set: make cards with `simgpu-card create DIR` and set it to DIR";
  return nullptr;
}

std::unique_ptr<Host> Host::open(const std::string& dir, std::string& error) {
  std::unique_ptr<Host> host(new Host(dir));
  return host->openAll(error) ? std::move(host) : nullptr;
}

bool Host::openAll(std::string& error) {
  Mapping mapping = mapFile(dir_ + "/host", sizeof(HostState));
  error = mapping.error;
  if (mapping.at == nullptr) return false;
  state_ = static_cast<HostState*>(mapping.at);
  stateBytes_ = mapping.bytes;
  if (state_->magic != kMagic) error = dir_ + "/host is of another simgpu: make the cards anew";
  traceFd_ = ::open((dir_ + "/trace").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  for (unsigned i = 0; i < state_->cards && error.empty(); ++i) {
    auto card = Card::open(dir_ + "/" + std::to_string(i), i, error);
    if (card) cards_.push_back(std::move(card));
  }
  return error.empty();
}

Host::~Host() {
  if (state_ != nullptr) ::munmap(state_, stateBytes_);
  if (traceFd_ >= 0) ::close(traceFd_);
}

std::optional<unsigned> Host::enlist() {
  SharedLock lock(state_->lock);
  reclaimLocked();
  for (unsigned i = 0; i < kMaxProcesses; ++i) {
    ProcessSlot& slot = state_->processes[i];
    if (slot.pid != 0) continue;
    slot.startTime = startTimeOf(::getpid()).value_or(0);
    slot.pid = ::getpid();
    return i;
  }
  return std::nullopt;
}

std::optional<unsigned> Host::find(pid_t pid) {
  for (unsigned i = 0; i < kMaxProcesses; ++i)
    if (state_->processes[i].pid == pid && lives(i)) return i;
  return std::nullopt;
}

bool Host::lives(unsigned slot) {
  ProcessSlot& s = state_->processes[slot];
  pid_t pid = s.pid;
  return pid != 0 && startTimeOf(pid) == s.startTime;
}

void Host::reclaim() {
  SharedLock lock(state_->lock);
  reclaimLocked();
}

void Host::reclaimLocked() {
  for (unsigned i = 0; i < kMaxProcesses; ++i)
    if (state_->processes[i].pid != 0 && !lives(i)) reclaimSlot(i);
}

void Host::reclaimSlot(unsigned index) {
  ProcessSlot& slot = state_->processes[index];
  noteTeardown(slot);
  for (auto& card : cards_) card->giveBackAllOf(index);
  for (auto& bytes : slot.bytes) bytes = 0;
  slot.contexts = 0;
  slot.state = 0;
  slot.unrecoverable = 0;
  slot.restored = 0;
  slot.features = 0;
  slot.savedBytes = 0;
  slot.helperTid = 0;
  slot.mail.state = MailState::Empty;
  slot.pid = 0;
}

// On some drivers the machine hangs when a process that was restored dies while it runs.
void Host::noteTeardown(const ProcessSlot& slot) {
  constexpr std::uint32_t kCheckpointed = 2;
  bool unsafe = slot.restored != 0 && slot.state != kCheckpointed;
  for (auto& card : cards_)
    if (unsafe && (slot.contexts >> card->index() & 1u) &&
        card->settingsOf(slot.pid)->unsafeTeardown)
      trace("host-hung pid=" + std::to_string(slot.pid));
}

std::optional<Extents> Host::take(unsigned slot, unsigned card, std::uint64_t bytes) {
  SharedLock lock(state_->lock);
  auto extents = cards_[card]->take(slot, bytes);
  if (!extents) {
    reclaimLocked();
    extents = cards_[card]->take(slot, bytes);
  }
  if (extents) state_->processes[slot].bytes[card] += bytesIn(*extents);
  return extents;
}

void Host::giveBack(unsigned slot, unsigned card, const Extents& extents) {
  for (const Extent& e : extents) cards_[card]->discard(e);
  SharedLock lock(state_->lock);
  cards_[card]->giveBack(extents);
  state_->processes[slot].bytes[card] -= bytesIn(extents);
}

std::uint64_t Host::savedBytes() {
  std::uint64_t all = 0;
  for (unsigned i = 0; i < kMaxProcesses; ++i)
    if (state_->processes[i].pid != 0) all += state_->processes[i].savedBytes;
  return all;
}

void Host::trace(std::string_view what) {
  if (traceFd_ < 0) return;
  char line[512];
  constexpr unsigned long long kSecond = 1'000'000'000;
  unsigned long long now = nowNs();
  int n = std::snprintf(line, sizeof line, "%llu.%09llu %.*s\n", now / kSecond, now % kSecond,
                        static_cast<int>(what.size()), what.data());
  auto bytes = std::min(static_cast<std::size_t>(n), sizeof line - 1);
  // One write per line: O_APPEND keeps the lines of several processes whole. A lost line is no
  // reason to fail a driver call.
  if (::write(traceFd_, line, bytes) < 0) return;
}

std::optional<std::string> createHost(const std::string& dir,
                                      const std::vector<std::string>& cards) {
  if (cards.empty() || cards.size() > kMaxCards)
    return std::to_string(cards.size()) + " cards: one to " + std::to_string(kMaxCards) +
           " will do";
  if (::mkdir(dir.c_str(), 0755) != 0 && ::access((dir + "/host").c_str(), F_OK) == 0)
    return dir + " has cards already: remove it first";
  for (std::size_t i = 0; i < cards.size(); ++i)
    if (auto error = createCard(dir + "/" + std::to_string(i), cards[i])) return error;
  if (auto error = makeFile(dir + "/trace", 0)) return error;
  if (auto error = makeFile(dir + "/host", sizeof(HostState))) return error;
  Mapping mapping = mapFile(dir + "/host", sizeof(HostState));
  if (mapping.at == nullptr) return mapping.error;
  auto* state = static_cast<HostState*>(mapping.at);
  state->cards = static_cast<std::uint32_t>(cards.size());
  state->lock.init();
  for (ProcessSlot& slot : state->processes) slot.callers.init();
  state->magic = kMagic;
  ::munmap(mapping.at, mapping.bytes);
  return std::nullopt;
}

}  // namespace simgpu
