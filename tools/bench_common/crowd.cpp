#include "bench_common/crowd.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "bench_common/figures.h"

namespace ts::bench {
namespace {

// For ever: it is the bench that decides, and it outlives no one.
void waitForOrder(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) ::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void waitForJob(int who, std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec patience{kPatience.count(), 0};
  while (word.load() == value) {
    goOn();
    if (::syscall(SYS_futex, &word, FUTEX_WAIT, value, &patience, nullptr, 0) == 0) continue;
    if (errno == ETIMEDOUT)
      die("job " + std::to_string(who) + " has not done its part within 30 s");
  }
}

void set(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

Crowd::Crowd(int most, Make make) : most_(most), make_(std::move(make)) {
  void* shared = ::mmap(nullptr, sizeof(Slot) * std::size_t(most), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) die("no shared memory");
  slots_ = new (shared) Slot[std::size_t(most)]();
  processes_.reserve(std::size_t(most));
}

Crowd::~Crowd() {
  processes_.clear();
  ::munmap(slots_, sizeof(Slot) * std::size_t(most_));
}

void Crowd::live(int who, Slot& slot) {
  const auto turns = make_(who);
  set(slot.done, 1);
  for (std::uint32_t order = 1;; ++order) {
    waitForOrder(slot.order, order);
    const std::int64_t began = nowNs();
    turns->ask();
    turns->untilHeld();
    slot.held = nowNs();
    turns->yield();
    slot.took = nowNs() - began;
    set(slot.done, order + 1);
  }
}

void Crowd::growTo(int count) {
  constexpr int kAtOnce = 64;  // no more than a daemon's backlog takes
  while (size() < count) {
    const int first = size();
    const int end = std::min(count, first + kAtOnce);
    for (int who = first; who < end; ++who) {
      Slot& slot = slots_[who];
      slot.order = 1;
      processes_.emplace_back([this, who, &slot] { live(who, slot); });
    }
    for (int who = first; who < end; ++who) waitForJob(who, slots_[who].done, 0);
  }
}

double Crowd::turn(int who) {
  begin(who);
  return finish(who);
}

void Crowd::begin(int who) {
  Slot& slot = slots_[who];
  set(slot.order, slot.order.load() + 1);
}

double Crowd::finish(int who) {
  Slot& slot = slots_[who];
  waitForJob(who, slot.done, slot.order.load() - 1);
  return double(slot.took) / 1000;
}

}  // namespace ts::bench
