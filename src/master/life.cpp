#include "master/life.h"

#include <kj/exception.h>

#include <limits>
#include <random>
#include <string>

#include "wire/greet.h"

namespace ts {

Life::Life(Store& store) : store_(store) {
  above(store_.lastGeneration());
}

const Generation& Life::above(std::uint32_t number) {
  if (number == std::numeric_limits<std::uint32_t>::max())
    kj::throwFatalException(
        sentence("there is no generation above " + std::to_string(number) +
                 ": the database or a node holds a number that no master has counted up to; remove "
                 "the database "
                 "of this master, or the state_dir of the node, whichever holds it"));
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
