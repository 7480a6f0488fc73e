// libnvidia-ml.so.1: what the cards and their users look like from outside.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "simgpu/host.h"
#include "simgpu/nvml_abi.h"
#include "simgpu/process_id.h"
#include "simgpu/units.h"

#define SIMGPU_API extern "C" __attribute__((visibility("default")))
#define SIMGPU_ALIAS(name, target) SIMGPU_API decltype(target) name __attribute__((alias(#target)))

namespace simgpu {
namespace {

constexpr unsigned kNoInstance = 0xffffffff;

std::mutex initMutex;
unsigned initCount = 0;
std::atomic<Host*> theHost{nullptr};  // kept when the last user shuts down: its handles stay good

nvmlReturn_t init() {
  std::lock_guard lock(initMutex);
  std::string error;
  if (theHost == nullptr) theHost = Host::openFromEnvironment(error).release();
  if (theHost == nullptr) {
    std::fprintf(stderr, "simgpu: %s\n", error.c_str());
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  ++initCount;
  return NVML_SUCCESS;
}

Host* host() {
  std::lock_guard lock(initMutex);
  return initCount > 0 ? theHost.load() : nullptr;
}

template <class Body>
nvmlReturn_t withHost(const void* out, Body body) {
  Host* h = host();
  if (h == nullptr) return NVML_ERROR_UNINITIALIZED;
  return out == nullptr ? NVML_ERROR_INVALID_ARGUMENT : body(*h);
}

// A device handle is the index plus one.
nvmlDevice_t handleOf(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(index) + 1);
}

template <class Body>
nvmlReturn_t withCard(nvmlDevice_t device, const void* out, Body body) {
  return withHost(out, [&](Host& h) {
    std::uintptr_t number = reinterpret_cast<std::uintptr_t>(device);
    if (number == 0 || number > h.cardCount()) return NVML_ERROR_INVALID_ARGUMENT;
    return body(h, h.card(static_cast<unsigned>(number - 1)));
  });
}

nvmlReturn_t copyText(char* out, unsigned size, const std::string& text) {
  if (size <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

constexpr unsigned long long kNotAvailable = ~0ull;

struct User {
  unsigned pid;
  unsigned long long bytes;
};

// What the control file says of a process instead of the truth; nothing: it says nothing.
std::optional<User> saidOf(const Settings& settings, unsigned pid) {
  if (settings.listed.empty() || settings.listed == "no") return std::nullopt;
  if (settings.listed == "N/A") return User{pid, kNotAvailable};
  return User{pid, *parseBytes(settings.listed)};
}

std::vector<User> usersOf(Host& h, Card& card) {
  h.reclaim();
  std::vector<User> users;
  for (unsigned i = 0; i < kMaxProcesses; ++i) {
    ProcessSlot& slot = h.slot(i);
    bool uses = slot.pid != 0 && (slot.contexts >> card.index() & 1u) != 0;
    if (!uses || !card.settingsOf(slot.pid)->listed.empty()) continue;
    users.push_back({static_cast<unsigned>(slot.pid), slot.bytes[card.index()]});
  }
  // A process may be listed that has no memory on the card, or never asked the driver for anything.
  auto settings = card.settingsOf(0);
  for (const auto& [pid, own] : settings->ofProcess)
    if (auto user = saidOf(*own, static_cast<unsigned>(pid)); user && startTimeOf(pid))
      users.push_back(*user);
  return users;
}

void fill(nvmlProcessInfo_v1_t& out, const User& user) {
  out = {user.pid, user.bytes};
}
void fill(nvmlProcessInfo_t& out, const User& user) {
  out = {user.pid, user.bytes, kNoInstance, kNoInstance};
}

std::vector<User> mpsClientsOf(Host& h, Card& card) {
  std::vector<User> clients;
  for (const User& user : usersOf(h, card))
    if (card.settingsOf(static_cast<pid_t>(user.pid))->mps != Feature::Off) clients.push_back(user);
  return clients;
}

template <class Info>
nvmlReturn_t listUsers(nvmlDevice_t device, unsigned* count, Info* out,
                       std::vector<User> (*list)(Host&, Card&) = usersOf) {
  return withCard(device, count, [&](Host& h, Card& card) {
    std::vector<User> users = list(h, card);
    auto n = static_cast<unsigned>(users.size());
    bool fits = *count >= n && (out != nullptr || n == 0);
    *count = n;
    if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; ++i) fill(out[i], users[i]);
    return NVML_SUCCESS;
  });
}

}  // namespace

SIMGPU_API nvmlReturn_t nvmlInit_v2() {
  return init();
}
SIMGPU_API nvmlReturn_t nvmlInit() {
  return init();
}
SIMGPU_API nvmlReturn_t nvmlInitWithFlags(unsigned) {
  return init();
}

SIMGPU_API nvmlReturn_t nvmlShutdown() {
  std::lock_guard lock(initMutex);
  if (initCount == 0) return NVML_ERROR_UNINITIALIZED;
  --initCount;
  return NVML_SUCCESS;
}

SIMGPU_API const char* nvmlErrorString(nvmlReturn_t code) {
  switch (code) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument Version Mismatch";
    case NVML_ERROR_UNKNOWN:
      break;
  }
  return "Unknown Error";
}

SIMGPU_API nvmlReturn_t nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return withHost(
      out, [&](Host& h) { return copyText(out, size, h.card(0).settings()->driverVersion); });
}

SIMGPU_API nvmlReturn_t nvmlSystemGetNVMLVersion(char* out, unsigned size) {
  return withHost(out, [&](Host& h) {
    return copyText(out, size, "13." + h.card(0).settings()->driverVersion);
  });
}

SIMGPU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* out) {
  return withHost(out, [&](Host& h) {
    *out = h.card(0).settings()->cudaVersion;
    return NVML_SUCCESS;
  });
}
SIMGPU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* out) {
  return nvmlSystemGetCudaDriverVersion(out);
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* out) {
  return withHost(out, [&](Host& h) {
    *out = h.cardCount();
    return NVML_SUCCESS;
  });
}
SIMGPU_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

SIMGPU_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  return withHost(out, [&](Host& h) {
    if (index >= h.cardCount()) return NVML_ERROR_INVALID_ARGUMENT;
    *out = handleOf(index);
    return NVML_SUCCESS;
  });
}
SIMGPU_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

SIMGPU_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  return withHost(out, [&](Host& h) {
    for (unsigned i = 0; uuid != nullptr && i < h.cardCount(); ++i) {
      if (h.card(i).settings()->uuid != uuid) continue;
      *out = handleOf(i);
      return NVML_SUCCESS;
    }
    return uuid == nullptr ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* busId, nvmlDevice_t* out) {
  return withHost(out, [&](Host& h) {
    // "0000:01:00.0" and NVML's own "00000000:01:00.0" alike.
    for (unsigned i = 0; busId != nullptr && i < h.cardCount(); ++i) {
      if (!std::string(busId).ends_with(h.card(i).busId())) continue;
      *out = handleOf(i);
      return NVML_SUCCESS;
    }
    return busId == nullptr ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* out) {
  return withCard(device, out, [&](Host&, Card& card) {
    *out = card.index();
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* out, unsigned size) {
  return withCard(device, out,
                  [&](Host&, Card& card) { return copyText(out, size, card.settings()->name); });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned size) {
  return withCard(device, out,
                  [&](Host&, Card& card) { return copyText(out, size, card.settings()->uuid); });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return withCard(device, out, [&](Host&, Card& card) {
    *out = {};
    out->bus = card.index() + 1;
    out->pciDeviceId = 0x233010de;
    std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%s", card.busId().c_str());
    std::snprintf(out->busId, sizeof out->busId, "0000%s", card.busId().c_str());
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  return withCard(device, out, [&](Host& h, Card& card) {
    h.reclaim();
    std::uint64_t used = card.usedBytes();
    *out = {card.totalBytes(), card.totalBytes() - used, used};
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out) {
  return withCard(device, out, [&](Host& h, Card& card) {
    if (out->version != kMemoryV2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    h.reclaim();
    std::uint64_t used = card.usedBytes();
    *out = {kMemoryV2, card.totalBytes(), 0, card.totalBytes() - used, used};
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  return withCard(device, out, [&](Host&, Card& card) {
    *out = {card.utilization(), 0};
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                unsigned* count,
                                                                nvmlProcessInfo_t* out) {
  return listUsers(device, count, out);
}
SIMGPU_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3);

SIMGPU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                             nvmlProcessInfo_v1_t* out) {
  return listUsers(device, count, out);
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                   unsigned* count,
                                                                   nvmlProcessInfo_t* out) {
  return listUsers(device, count, out, mpsClientsOf);
}
SIMGPU_ALIAS(nvmlDeviceGetMPSComputeRunningProcesses_v2,
             nvmlDeviceGetMPSComputeRunningProcesses_v3);

// Nobody draws here.
SIMGPU_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_t*) {
  return withCard(device, count, [&](Host&, Card&) {
    *count = 0;
    return NVML_SUCCESS;
  });
}
SIMGPU_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3);

SIMGPU_API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int* out) {
  return withCard(device, out, [&](Host&, Card& card) {
    *out = card.settings()->persistenceMode ? 1 : 0;
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current,
                                             unsigned* pending) {
  return withCard(device, current, [&](Host&, Card& card) {
    *current = card.settings()->mig ? 1 : 0;
    if (pending != nullptr) *pending = *current;
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int* out) {
  return withCard(device, out, [&](Host&, Card&) {
    *out = 0;
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major,
                                                           int* minor) {
  return withCard(device, major, [&](Host&, Card&) {
    *major = 9;
    if (minor != nullptr) *minor = 0;
    return NVML_SUCCESS;
  });
}

SIMGPU_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* out) {
  return nvmlDeviceGetIndex(device, out);
}

}  // namespace simgpu
