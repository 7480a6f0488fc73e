// libnvidia-ml.so.1, loaded at run time: the entry points that this driver has.
#pragma once

#include <string>

#include "device/nvml_abi.h"

namespace ts::nvml {

// Null pointers stand for entry points that this driver does not have. The library is never
// unloaded: a driver's threads do not survive that.
struct Library {
  std::string error;  // why it cannot be used; empty: it can

  Return (*init)() = nullptr;
  const char* (*errorString)(Return) = nullptr;
  Return (*systemGetDriverVersion)(char*, unsigned int) = nullptr;
  Return (*deviceGetCount)(unsigned int*) = nullptr;
  Return (*deviceGetHandleByIndex)(unsigned int, Device*) = nullptr;
  Return (*deviceGetUuid)(Device, char*, unsigned int) = nullptr;
  Return (*deviceGetName)(Device, char*, unsigned int) = nullptr;
  Return (*deviceGetPciInfo)(Device, PciInfo*) = nullptr;
  Return (*deviceGetMemoryInfo)(Device, Memory*) = nullptr;
  Return (*deviceGetPersistenceMode)(Device, int*) = nullptr;
  Return (*deviceGetMigMode)(Device, unsigned int*, unsigned int*) = nullptr;
  // The newest of the three that there is; the other is null.
  Return (*processesV1)(Device, unsigned int*, ProcessInfoV1*) = nullptr;
  Return (*processesV2)(Device, unsigned int*, ProcessInfoV2*) = nullptr;
  Return (*mpsClients)(Device, unsigned int*, ProcessInfoV2*) = nullptr;  // null before 11.0

  std::string nameOf(Return code) const;
};

Library openLibrary(const std::string& path);

}  // namespace ts::nvml
