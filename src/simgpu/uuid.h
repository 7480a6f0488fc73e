// GPU uuids as the driver gives them (16 bytes) and as people see them ("GPU-1234abcd-…").
#pragma once

#include <string>

#include "simgpu/cuda_abi.h"

namespace simgpu {

CUuuid uuidFromText(const std::string& text);
std::string freshUuid();

}  // namespace simgpu
