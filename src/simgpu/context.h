// Contexts: what a program makes on a device before it uses it, and the stack of them that each
// thread has.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/card.h"
#include "simgpu/cuda_abi.h"
#include "simgpu/handles.h"
#include "simgpu/knobs.h"
#include "simgpu/streams.h"

namespace simgpu {

struct Context {
  CUdevice device = 0;  // as this process counts: CUDA_VISIBLE_DEVICES applied
  Card* card = nullptr;
  Knobs* knobs = nullptr;
  unsigned flags = 0;
  bool primary = false;
  unsigned references = 0;  // of a primary context
  std::shared_ptr<Stream> defaultStream;
};

// The contexts that are current for the calling thread, innermost last.
std::vector<CUcontext>& currentStack();

}  // namespace simgpu
