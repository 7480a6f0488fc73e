// The script that the fake libnvidia-ml.so.1 of these tests plays: two GPUs and who is on the
// first.
#pragma once

#include <vector>

namespace ts::test {

struct FakeProcess {
  unsigned int pid;
  unsigned long long bytes;
};

struct FakeNvml {
  int init = 0;
  int memory = 0;           // what nvmlDeviceGetMemoryInfo answers
  int list = 0;             // what the process list answers
  bool secondLost = false;  // the second GPU has fallen off the bus
  std::vector<FakeProcess> processes;
  std::vector<FakeProcess> mpsClients;  // LIST_VERSION 3 only
};

extern "C" FakeNvml* fakeNvmlScript();

}  // namespace ts::test
