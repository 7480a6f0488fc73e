#include "master/life.h"

#include <random>

namespace ts {

Life::Life(Store& store) : store_(store) { take(store_.lastGeneration() + 1); }

const Generation& Life::above(std::uint32_t number) {
  take(number + 1);
  return generation_;
}

void Life::take(std::uint32_t number) {
  std::random_device random;
  std::uint64_t id = (std::uint64_t(random()) << 32) | random();
  store_.setGeneration(number);
  generation_ = {number, id};
}

}  // namespace ts
