#include <cstring>

#include "simgpu/api.h"
#include "simgpu/copy.h"

namespace simgpu {
namespace {

CUdeviceptr address(const void* p) {
  return reinterpret_cast<CUdeviceptr>(p);
}

CUresult copyNow(const char* name, Ends ends, const Copy& copy) {
  return deviceCall(name, [&](Driver& driver, Context& context) {
    if (CUresult error = checkCopy(driver, copy, ends)) return error;
    Stream& stream = *context.defaultStream;
    driver.streams.runHere(context.defaultStream, [&] { runCopy(driver, stream, copy); });
    return CUDA_SUCCESS;
  });
}

CUresult copyLater(const char* name, Ends ends, const Copy& copy, CUstream handle) {
  return streamCall(name, handle, [&](Driver& driver, auto stream) {
    if (CUresult error = checkCopy(driver, copy, ends)) return error;
    driver.streams.submit(stream, [&driver, stream, copy] { runCopy(driver, *stream, copy); });
    return CUDA_SUCCESS;
  });
}

template <class Value>
CUresult checkFill(Driver& driver, CUdeviceptr to, std::size_t count) {
  bool good = to % sizeof(Value) == 0 && driver.memory.covers(to, count * sizeof(Value));
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Value>
CUresult fillNow(const char* name, CUdeviceptr to, Value value, std::size_t count) {
  return deviceCall(name, [&](Driver& driver, Context& context) {
    if (CUresult error = checkFill<Value>(driver, to, count)) return error;
    driver.streams.runHere(context.defaultStream, [&] { fillWith(to, value, count); });
    return CUDA_SUCCESS;
  });
}

template <class Value>
CUresult fillLater(const char* name, CUdeviceptr to, Value value, std::size_t count,
                   CUstream handle) {
  return streamCall(name, handle, [&](Driver& driver, auto stream) {
    if (CUresult error = checkFill<Value>(driver, to, count)) return error;
    driver.streams.submit(stream, [=] { fillWith(to, value, count); });
    return CUDA_SUCCESS;
  });
}

}  // namespace

SIMGPU_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copyNow("cuMemcpy", Ends::Any, {to, from, bytes});
}
SIMGPU_ALIAS(cuMemcpy_ptds, cuMemcpy);

SIMGPU_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copyNow("cuMemcpyHtoD", Ends::HostToDevice, {to, address(from), bytes});
}
SIMGPU_ALIAS(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);

SIMGPU_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copyNow("cuMemcpyDtoH", Ends::DeviceToHost, {address(to), from, bytes});
}
SIMGPU_ALIAS(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);

SIMGPU_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copyNow("cuMemcpyDtoD", Ends::DeviceToDevice, {to, from, bytes});
}
SIMGPU_ALIAS(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);

SIMGPU_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                  CUstream stream) {
  return copyLater("cuMemcpyAsync", Ends::Any, {to, from, bytes}, stream);
}
SIMGPU_ALIAS(cuMemcpyAsync_ptsz, cuMemcpyAsync);

SIMGPU_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                         CUstream stream) {
  return copyLater("cuMemcpyHtoDAsync", Ends::HostToDevice, {to, address(from), bytes}, stream);
}
SIMGPU_ALIAS(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2);

SIMGPU_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                         CUstream stream) {
  return copyLater("cuMemcpyDtoHAsync", Ends::DeviceToHost, {address(to), from, bytes}, stream);
}
SIMGPU_ALIAS(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2);

SIMGPU_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                         CUstream stream) {
  return copyLater("cuMemcpyDtoDAsync", Ends::DeviceToDevice, {to, from, bytes}, stream);
}
SIMGPU_ALIAS(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2);

SIMGPU_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fillNow("cuMemsetD8", to, value, count);
}
SIMGPU_ALIAS(cuMemsetD8_v2_ptds, cuMemsetD8_v2);

SIMGPU_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return fillNow("cuMemsetD16", to, value, count);
}
SIMGPU_ALIAS(cuMemsetD16_v2_ptds, cuMemsetD16_v2);

SIMGPU_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return fillNow("cuMemsetD32", to, value, count);
}
SIMGPU_ALIAS(cuMemsetD32_v2_ptds, cuMemsetD32_v2);

SIMGPU_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                    CUstream stream) {
  return fillLater("cuMemsetD8Async", to, value, count, stream);
}
SIMGPU_ALIAS(cuMemsetD8Async_ptsz, cuMemsetD8Async);

SIMGPU_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                                     CUstream stream) {
  return fillLater("cuMemsetD16Async", to, value, count, stream);
}
SIMGPU_ALIAS(cuMemsetD16Async_ptsz, cuMemsetD16Async);

SIMGPU_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                                     CUstream stream) {
  return fillLater("cuMemsetD32Async", to, value, count, stream);
}
SIMGPU_ALIAS(cuMemsetD32Async_ptsz, cuMemsetD32Async);

}  // namespace simgpu
