// Which life of a master this is: a number that only grows, and a random id beside it.
#pragma once

#include "store/store.h"
#include "wire/generation.h"

namespace ts {

class Life {
public:
  // Takes one more than the store remembers, and has it stored before anybody hears of it.
  explicit Life(Store& store);

  const Generation& generation() const { return generation_; }
  // Whether nodes may hold jobs of an earlier life.
  bool hadAnother() const { return generation_.number > 1; }
  // A node has followed a higher generation than ours: go above it.
  const Generation& above(std::uint32_t number);

private:
  void take(std::uint32_t number);

  Store& store_;
  Generation generation_;
};

}  // namespace ts
