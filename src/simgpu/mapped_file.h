// A file of shared words, made or mapped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace simgpu {

// Makes a sparse file of zeroes that every user may write.
std::optional<std::string> makeFile(const std::string& path, std::size_t bytes);

struct Mapping {
  void* at = nullptr;  // null: see error
  std::size_t bytes = 0;
  std::string error;
};
Mapping mapFile(const std::string& path, std::size_t leastBytes);

}  // namespace simgpu
