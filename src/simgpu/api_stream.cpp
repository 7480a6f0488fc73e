#include <algorithm>

#include "simgpu/api.h"
#include "simgpu/process_id.h"

namespace simgpu {
namespace {

CUresult createStream(CUstream* out, unsigned flags, int priority) {
  return deviceCall("cuStreamCreate", [&](Driver& driver, Context& context) {
    if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = driver.streams.create(context, flags, false);
    stream->priority = priority;
    *out = driver.streamHandles.add(stream);
    return CUDA_SUCCESS;
  });
}

// Of an event that was never recorded: done.
Ticket ticketOf(Event& event) {
  std::lock_guard lock(event.mutex);
  return event.ticket;
}

CUresult elapsed(float* ms, const std::shared_ptr<Event>& start, const std::shared_ptr<Event>& end,
                 Driver& driver) {
  if (ms == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!start || !end || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
    return CUDA_ERROR_INVALID_HANDLE;
  if (!start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!driver.streams.done(ticketOf(*start)) || !driver.streams.done(ticketOf(*end)))
    return CUDA_ERROR_NOT_READY;
  auto difference = static_cast<std::int64_t>(end->timeNs - start->timeNs);
  *ms = static_cast<float>(static_cast<double>(difference) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return createStream(out, flags, 0);
}

SIMGPU_API CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return createStream(out, flags, priority);
}

SIMGPU_API CUresult cuStreamDestroy_v2(CUstream handle) {
  return gatedCall("cuStreamDestroy", [&](Driver& driver) {
    auto stream = driver.streamHandles.remove(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    driver.streams.close(stream);
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

SIMGPU_API CUresult cuStreamSynchronize(CUstream handle) {
  return streamCall("cuStreamSynchronize", handle, [](Driver& driver, auto stream) {
    driver.streams.await(driver.streams.last(stream));
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize);

SIMGPU_API CUresult cuStreamQuery(CUstream handle) {
  return streamCall("cuStreamQuery", handle, [](Driver& driver, auto stream) {
    bool done = driver.streams.done(driver.streams.last(stream));
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}
SIMGPU_ALIAS(cuStreamQuery_ptsz, cuStreamQuery);

SIMGPU_API CUresult cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned) {
  return streamCall("cuStreamWaitEvent", handle, [&](Driver& driver, auto stream) {
    auto event = driver.events.find(eventHandle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    driver.streams.waitFor(stream, ticketOf(*event));
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);

SIMGPU_API CUresult cuStreamGetFlags(CUstream handle, unsigned* out) {
  return streamCall("cuStreamGetFlags", handle, [&](Driver&, auto stream) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->flags;
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamGetFlags_ptsz, cuStreamGetFlags);

SIMGPU_API CUresult cuStreamGetPriority(CUstream handle, int* out) {
  return streamCall("cuStreamGetPriority", handle, [&](Driver&, auto stream) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = stream->priority;
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamGetPriority_ptsz, cuStreamGetPriority);

SIMGPU_API CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
  return streamCall("cuStreamGetCtx", handle, [&](Driver&, auto stream) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUcontext>(stream->context);
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamGetCtx_ptsz, cuStreamGetCtx);

// Nothing is ever captured here.
SIMGPU_API CUresult cuStreamIsCapturing(CUstream, int* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  return CUDA_SUCCESS;
}
SIMGPU_ALIAS(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);

SIMGPU_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return streamCall("cuLaunchHostFunc", handle, [&](Driver& driver, auto stream) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.streams.submit(stream, [=] {
      function(data);
      stream->timeNs = nowNs();
    });
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

SIMGPU_API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                                        unsigned) {
  return streamCall("cuStreamAddCallback", handle, [&](Driver& driver, auto stream) {
    if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.streams.submit(stream, [=] {
      callback(handle, CUDA_SUCCESS, data);
      stream->timeNs = nowNs();
    });
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuStreamAddCallback_ptsz, cuStreamAddCallback);

SIMGPU_API CUresult cuEventCreate(CUevent* out, unsigned flags) {
  return deviceCall("cuEventCreate", [&](Driver& driver, Context&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->flags = flags;
    *out = driver.events.add(event);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuEventDestroy_v2(CUevent handle) {
  return gatedCall("cuEventDestroy", [&](Driver& driver) {
    return driver.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
SIMGPU_ALIAS(cuEventDestroy, cuEventDestroy_v2);

SIMGPU_API CUresult cuEventRecord(CUevent handle, CUstream streamHandle) {
  return streamCall("cuEventRecord", streamHandle, [&](Driver& driver, auto stream) {
    auto event = driver.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard lock(event->mutex);
    event->recorded = true;
    event->ticket = driver.streams.submit(stream, [event, stream, now = nowNs()] {
      stream->timeNs = std::max(now, stream->timeNs.load());
      event->timeNs = stream->timeNs.load();
    });
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuEventRecord_ptsz, cuEventRecord);

SIMGPU_API CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned) {
  return cuEventRecord(handle, stream);
}
SIMGPU_ALIAS(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);

SIMGPU_API CUresult cuEventQuery(CUevent handle) {
  return gatedCall("cuEventQuery", [&](Driver& driver) {
    auto event = driver.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return driver.streams.done(ticketOf(*event)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

SIMGPU_API CUresult cuEventSynchronize(CUevent handle) {
  return gatedCall("cuEventSynchronize", [&](Driver& driver) {
    auto event = driver.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    driver.streams.await(ticketOf(*event));
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  return gatedCall("cuEventElapsedTime", [&](Driver& driver) {
    return elapsed(ms, driver.events.find(start), driver.events.find(end), driver);
  });
}
SIMGPU_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2);

}  // namespace simgpu
