#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "simgpu/api.h"
#include "simgpu/uuid.h"

namespace simgpu {
namespace {

// The attributes of a mid-sized accelerator; what is not here is 0: not supported.
int attribute(int which, const Card& card) {
  static constexpr std::pair<int, int> kValues[] = {
      {1, 1024},     {2, 1024},      {3, 1024},  {4, 64},   {5, 2147483647},  {6, 65535},
      {7, 65535},    {8, 49152},     {9, 65536}, {10, 32},  {11, 2147483647}, {12, 65536},
      {13, 1980000}, {14, 512},      {15, 1},    {16, 132}, {31, 1},          {36, 2619000},
      {37, 5120},    {38, 52428800}, {39, 2048}, {40, 3},   {41, 1},          {75, 9},
      {76, 0},       {78, 1},        {79, 1},    {80, 1},   {81, 233472},     {82, 65536},
      {95, 1},       {97, 232448},   {99, 1},    {102, 1},  {106, 32},        {111, 1024},
      {115, 1}};
  if (which == 33) return static_cast<int>(card.index()) + 1;  // PCI bus, as in the bus id
  for (auto [key, value] : kValues)
    if (key == which) return value;
  return 0;
}

// A call about one device: it needs no context and works while the process is locked.
template <class Body>
CUresult aboutDevice(const void* out, CUdevice device, Body body) {
  return plainCall([&](Driver& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Card* card = driver.card(device);
    return card == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*card);
  });
}

CUresult copyText(char* out, int size, const std::string& text) {
  if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(size), "%s", text.c_str());
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult cuDeviceGetCount(int* count) {
  return plainCall([&](Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = driver.deviceCount();
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  return aboutDevice(out, ordinal, [&](Card&) {
    *out = ordinal;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuDeviceGetName(char* out, int size, CUdevice device) {
  return aboutDevice(out, device,
                     [&](Card& card) { return copyText(out, size, card.settings()->name); });
}

SIMGPU_API CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device) {
  return aboutDevice(out, device, [&](Card& card) {
    *out = uuidFromText(card.settings()->uuid);
    return CUDA_SUCCESS;
  });
}
SIMGPU_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

SIMGPU_API CUresult cuDeviceTotalMem_v2(std::size_t* out, CUdevice device) {
  return aboutDevice(out, device, [&](Card& card) {
    *out = card.totalBytes();
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuDeviceGetAttribute(int* out, int which, CUdevice device) {
  return aboutDevice(out, device, [&](Card& card) {
    if (which <= 0 || which > 512) return CUDA_ERROR_INVALID_VALUE;
    *out = attribute(which, card);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return aboutDevice(major, device, [&](Card& card) {
    *major = attribute(75, card);
    if (minor != nullptr) *minor = attribute(76, card);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuDeviceGetPCIBusId(char* out, int size, CUdevice device) {
  return aboutDevice(out, device, [&](Card& card) { return copyText(out, size, card.busId()); });
}

SIMGPU_API CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* busId) {
  return plainCall([&](Driver& driver) {
    if (out == nullptr || busId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice d = 0; d < driver.deviceCount(); ++d) {
      if (::strcasecmp(driver.card(d)->busId().c_str(), busId) != 0) continue;
      *out = d;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

SIMGPU_API CUresult cuDeviceCanAccessPeer(int* out, CUdevice device, CUdevice) {
  return aboutDevice(out, device, [&](Card&) {
    *out = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace simgpu
