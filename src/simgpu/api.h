// What every entry point does first and last: the driver must be there, the gate open, the knobs
// asked.
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "simgpu/driver.h"

// An entry point of libcuda.so.1, and the other names under which the driver exports the same.
#define SIMGPU_API extern "C" __attribute__((visibility("default")))
#define SIMGPU_ALIAS(name, target) SIMGPU_API decltype(target) name __attribute__((alias(#target)))

namespace simgpu {

// One call inside the gate. It traces itself when the card says `trace = all`.
class GatedCall {
public:
  GatedCall(Driver& driver, const char* name) : driver_(driver), name_(name) {
    driver_.gate.enter();
  }
  ~GatedCall() { driver_.gate.leave(); }
  GatedCall(const GatedCall&) = delete;
  GatedCall& operator=(const GatedCall&) = delete;

  template <class Body>
  CUresult run(Card& card, Body body) {
    auto settings = card.settings();
    bool traced = settings->trace == TraceLevel::All;
    if (!traced && !settings->anyKnob()) return body();
    if (traced) trace("begin", "");
    Knobs& knobs = driver_.knobs(card);
    CUresult result = knobs.pass(card, name_);
    if (Knobs::crashes(card, name_, Crash::Before)) crash();
    if (result == CUDA_SUCCESS) result = knobs.answer(card, name_, body());
    if (traced) trace("end", " code=" + std::to_string(result));
    if (Knobs::crashes(card, name_, Crash::After)) crash();
    return result;
  }

private:
  void trace(const char* when, const std::string& end);

  Driver& driver_;
  const char* name_;
};

// The border: no exception leaves the driver.
template <class Body>
CUresult guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "simgpu: %s\n", e.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

// A call that asks and touches no device: it works while the process is locked.
template <class Body>
CUresult plainCall(Body body) {
  Driver* driver = Driver::get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return guarded([&] { return body(*driver); });
}

// A call on a device that needs no current context.
template <class Body>
CUresult gatedCall(const char* name, Body body) {
  return plainCall([&](Driver& driver) {
    GatedCall call(driver, name);
    return call.run(*driver.card(0), [&] { return body(driver); });
  });
}

// A call in the current context.
template <class Body>
CUresult deviceCall(const char* name, Body body) {
  return plainCall([&](Driver& driver) -> CUresult {
    GatedCall call(driver, name);
    auto context = driver.current();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    return call.run(*context->card, [&] { return body(driver, *context); });
  });
}

// A call on a stream of the current context.
template <class Body>
CUresult streamCall(const char* name, CUstream handle, Body body) {
  return deviceCall(name, [&](Driver& driver, Context& context) -> CUresult {
    auto stream = driver.stream(context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    return body(driver, stream);
  });
}

// What a process has used is remembered: not every driver brings it back.
inline CUresult useFeature(Driver& driver, const Context& context, Feature Settings::*feature,
                           UsedFeature bit) {
  if ((*context.card->settings()).*feature == Feature::Off) return CUDA_ERROR_NOT_SUPPORTED;
  driver.host.slot(driver.slot).features |= bit;
  return CUDA_SUCCESS;
}

inline std::byte* bytesAt(CUdeviceptr at) {
  return reinterpret_cast<std::byte*>(at);
}

}  // namespace simgpu
