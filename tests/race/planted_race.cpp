// A counter that a worker and the loop write to without a word between them: what ThreadSanitizer
// must find in this tree, below KJ's frames and with our suppressions, or its silence means
// nothing.
#include <cstdio>

#include "reactor/workers.h"
#include "support/loop.h"

namespace {

int planted = 0;

void writePlanted() {
  ++planted;
}

}  // namespace

int main() {
  ts::test::Loop l;
  ts::Workers workers;
  auto there = workers.call<int>([] {
    writePlanted();
    return 0;
  });
  kj::evalLater([] { writePlanted(); }).wait(l.scope);
  there.wait(l.scope);
  std::printf("planted %d\n", planted);
}
