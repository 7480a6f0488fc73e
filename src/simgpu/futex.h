// Waiting for a word in shared memory to change.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

// Back when the word is no longer `seen`, when woken, or after `ns`: look again.
void futexWait(const void* word, std::uint32_t seen, std::uint64_t ns);
void futexWake(const void* word);

template <class Enum>
void waitWhile(const std::atomic<Enum>& word, Enum seen, std::uint64_t ns) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  if (word.load() == seen) futexWait(&word, static_cast<std::uint32_t>(seen), ns);
}

template <class Enum>
void change(std::atomic<Enum>& word, Enum to) {
  word.store(to);
  futexWake(&word);
}

}  // namespace simgpu
