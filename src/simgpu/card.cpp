#include "simgpu/card.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "simgpu/mapped_file.h"
#include "simgpu/process_id.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kStep = 4 << 20;  // of a transfer
constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t threadCpuNs() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kSecond + static_cast<std::uint64_t>(t.tv_nsec);
}

// Reserves the next `ns` of a link that others use too; says when they end. `from` is where the
// caller's last step ended: waking up late costs a transfer nothing.
std::uint64_t reserve(std::atomic<std::uint64_t>& freeAt, std::uint64_t from, std::uint64_t ns) {
  std::uint64_t seen = freeAt.load();
  std::uint64_t end = 0;
  do end = std::max(seen, from) + ns;
  while (!freeAt.compare_exchange_weak(seen, end));
  return end;
}

std::uint64_t granulesFor(std::uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule;
}

}  // namespace

Card::Card(std::string dir, unsigned index)
    : dir_(std::move(dir)), index_(index), control_(dir_ + "/card.conf") {}

std::unique_ptr<Card> Card::open(const std::string& dir, unsigned index, std::string& error) {
  std::unique_ptr<Card> card(new Card(dir, index));
  Mapping mapping = mapFile(dir + "/state", sizeof(CardState));
  error = mapping.error;
  if (mapping.at == nullptr) return nullptr;
  card->state_ = static_cast<CardState*>(mapping.at);
  card->owner_ = card->state_->owners();
  card->stateBytes_ = mapping.bytes;
  card->memoryFd_ = ::open((dir + "/memory").c_str(), O_RDWR | O_CLOEXEC);
  if (card->state_->magic != kMagic)
    error = dir + "/state is of another simgpu: make the card anew";
  if (card->memoryFd_ < 0) error = "cannot open " + dir + "/memory";
  return error.empty() ? std::move(card) : nullptr;
}

Card::~Card() {
  if (state_ != nullptr) ::munmap(state_, stateBytes_);
  if (memoryFd_ >= 0) ::close(memoryFd_);
}

std::string Card::busId() const {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", index_ + 1);
  return text;
}

std::optional<Extent> Card::takeRun(unsigned slot, std::uint64_t count) {
  auto* end = owner_ + state_->granules;
  auto* at = std::search_n(owner_, end, static_cast<std::ptrdiff_t>(count), std::uint16_t{0});
  if (at == end) return std::nullopt;
  auto first = static_cast<std::uint64_t>(at - owner_);
  mark(first, count, static_cast<std::uint16_t>(slot + 1));
  return Extent{first * kGranule, count * kGranule};
}

void Card::mark(std::uint64_t first, std::uint64_t count, std::uint16_t owner) {
  std::fill_n(owner_ + first, count, owner);
  if (owner != 0)
    state_->usedGranules += count;
  else
    state_->usedGranules -= count;
}

std::optional<Extents> Card::take(unsigned slot, std::uint64_t bytes) {
  std::uint64_t need = granulesFor(bytes);
  if (need > state_->granules - state_->usedGranules) return std::nullopt;
  if (auto whole = takeRun(slot, need)) return Extents{*whole};
  Extents extents;  // a card has page tables: what is free serves, wherever it lies
  for (std::uint64_t i = 0; i < state_->granules && need > 0; ++i) {
    if (owner_[i] != 0) continue;
    std::uint64_t n = 1;
    while (n < need && i + n < state_->granules && owner_[i + n] == 0) ++n;
    mark(i, n, static_cast<std::uint16_t>(slot + 1));
    extents.push_back({i * kGranule, n * kGranule});
    need -= n;
    i += n;
  }
  return extents;
}

void Card::giveBack(const Extents& extents) {
  for (const Extent& e : extents) mark(e.offset / kGranule, e.bytes / kGranule, 0);
}

void Card::giveBackAllOf(unsigned slot) {
  auto owner = static_cast<std::uint16_t>(slot + 1);
  for (std::uint64_t i = 0; i < state_->granules; ++i) {
    if (owner_[i] != owner) continue;
    std::uint64_t n = 1;
    while (i + n < state_->granules && owner_[i + n] == owner) ++n;
    discard({i * kGranule, n * kGranule});
    mark(i, n, 0);
    i += n;
  }
  // Counted anew: who died may have died between marking and counting.
  state_->usedGranules = state_->granules - static_cast<std::uint64_t>(
                                                std::count(owner_, owner_ + state_->granules, 0));
}

void Card::discard(const Extent& extent) {
  ::fallocate(memoryFd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(extent.offset), static_cast<off_t>(extent.bytes));
}

void Card::transfer(Direction direction, std::uint64_t bytes,
                    const std::function<void(std::uint64_t, std::uint64_t)>& step) {
  auto now = settings();
  std::uint64_t rate = direction == Direction::HostToDevice ? now->h2dRate : now->d2hRate;
  auto& freeAt = state_->linkFreeNs[direction == Direction::HostToDevice ? 0 : 1];
  std::uint64_t end = nowNs();
  for (std::uint64_t done = 0; done < bytes; done += kStep) {
    std::uint64_t n = std::min(kStep, bytes - done);
    if (rate > 0) end = reserve(freeAt, end, n * kSecond / rate);
    step(done, n);
    if (rate > 0) sleepUntilNs(end);
  }
}

std::uint64_t Card::compute(std::uint64_t readyNs, std::uint64_t modelledNs,
                            const std::function<void()>& run) {
  SharedLock alone(state_->compute);
  std::uint64_t end = std::max(readyNs, state_->kernelEndNs.load()) + modelledNs;
  std::uint64_t cpu = threadCpuNs();
  run();
  std::uint64_t busy = std::max(threadCpuNs() - cpu, modelledNs);
  std::uint64_t ran = nowNs();
  if (end > ran) sleepUntilNs(end);
  end = std::max(end, ran);
  state_->kernelEndNs = end;
  addBusy(busy, end);
  return end;
}

void Card::addBusy(std::uint64_t ns, std::uint64_t endNs) {
  state_->busyNs += ns;
  std::uint64_t second = endNs / kSecond;
  unsigned window = static_cast<unsigned>(second % kBusyWindows);
  if (state_->windowSecond[window].exchange(second) != second) state_->windowBusyNs[window] = 0;
  state_->windowBusyNs[window] += ns;
}

unsigned Card::utilization() const {
  std::uint64_t second = nowNs() / kSecond - 1;
  unsigned window = static_cast<unsigned>(second % kBusyWindows);
  if (state_->windowSecond[window] != second) return 0;
  std::uint64_t busy = state_->windowBusyNs[window];
  return static_cast<unsigned>(std::min<std::uint64_t>(100, busy / (kSecond / 100)));
}

std::optional<std::string> createCard(const std::string& dir, const std::string& text) {
  auto parsed = parseSettings(text);
  if (auto* error = std::get_if<std::string>(&parsed)) return *error;
  std::uint64_t granules = std::get<Settings>(parsed).bytes / kGranule;
  if (granules == 0) return "a card needs at least 64 KiB of memory";
  if (::mkdir(dir.c_str(), 0755) != 0) return "cannot make " + dir + ": is it there already?";
  std::size_t stateBytes = sizeof(CardState) + granules * sizeof(std::uint16_t);
  if (auto error = makeFile(dir + "/memory", granules * kGranule)) return error;
  if (auto error = makeFile(dir + "/state", stateBytes)) return error;
  Mapping mapping = mapFile(dir + "/state", stateBytes);
  if (mapping.at == nullptr) return mapping.error;
  auto* state = static_cast<CardState*>(mapping.at);
  state->granules = granules;
  state->compute.init();
  state->magic = kMagic;
  ::munmap(mapping.at, mapping.bytes);
  std::ofstream conf(dir + "/card.conf");
  conf << text;
  return conf.flush() ? std::nullopt : std::optional("cannot write " + dir + "/card.conf");
}

}  // namespace simgpu
