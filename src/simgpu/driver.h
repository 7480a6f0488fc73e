// The driver inside one process: made by cuInit, and there until the process ends.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/context.h"
#include "simgpu/cuda_abi.h"
#include "simgpu/device_memory.h"
#include "simgpu/gate.h"
#include "simgpu/handles.h"
#include "simgpu/host.h"
#include "simgpu/kernels/registry.h"
#include "simgpu/streams.h"

namespace simgpu {

struct Event {
  unsigned flags = 0;
  std::mutex mutex;  // guards the ticket
  Ticket ticket;
  std::atomic<bool> recorded = false;
  std::atomic<std::uint64_t> timeNs = 0;  // when the stream reached it
};

struct Module {
  const Context* context = nullptr;
};

struct Function {
  const NamedKernel* kernel = nullptr;
  const Module* module = nullptr;
};

// The cards' host, opened at the first use; null with SIMGPU_CARDS unset or wrong, which is said
// once.
Host* sharedHost();

class Driver {
public:
  static CUresult init();
  // Null before cuInit and in a child of fork, where nothing of the driver works until exec.
  static Driver* get();

  int deviceCount() const { return static_cast<int>(visible_.size()); }
  Card* card(CUdevice device);
  Knobs& knobs(const Card& card) { return knobs_[card.index()]; }
  bool usesCard(unsigned index) const;

  std::shared_ptr<Context> makeContext(CUdevice device, unsigned flags, CUresult& error);
  // Waits for its work and frees all that it holds.
  void destroyContext(const std::shared_ptr<Context>& context);
  std::shared_ptr<Context> current();  // of the calling thread; null: none

  // A handle as programs give it: null and 1 are the default stream, 2 the thread's.
  std::shared_ptr<Stream> stream(const Context& context, CUstream handle);

  Host& host;
  const unsigned slot;
  Gate gate;
  Streams streams;
  DeviceMemory memory;
  Handles<Context, CUcontext> contexts;
  Handles<Stream, CUstream> streamHandles;
  Handles<Event, CUevent> events;
  Handles<Module, CUmodule> modules;
  Handles<Function, CUfunction> functions;
  std::mutex primaryMutex;
  std::vector<std::shared_ptr<Context>> primaries;  // one place per device

private:
  Driver(Host& host, unsigned slot);
  void noteContexts();

  std::vector<unsigned> visible_;  // card of each device
  Knobs knobs_[kMaxCards];
  std::mutex contextMutex_;
  std::atomic<unsigned> contextCount_[kMaxCards] = {};
};

// Which cards CUDA_VISIBLE_DEVICES lets a program see, in its order. Null: all.
std::vector<unsigned> visibleCards(Host& host, const char* variable);

}  // namespace simgpu
