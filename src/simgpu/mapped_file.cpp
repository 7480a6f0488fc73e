#include "simgpu/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simgpu {
namespace {

std::string failed(const char* what, const std::string& path) {
  return std::string("cannot ") + what + " " + path + ": " + std::strerror(errno);
}

}  // namespace

std::optional<std::string> makeFile(const std::string& path, std::size_t bytes) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return failed("make", path);
  // Jobs of other users share the card, whatever the umask of the one who made it.
  bool good = ::fchmod(fd, 0666) == 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  std::optional<std::string> error;
  if (!good) error = failed("size", path);
  ::close(fd);
  return error;
}

Mapping mapFile(const std::string& path, std::size_t leastBytes) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {.error = failed("open", path)};
  struct stat info = {};
  ::fstat(fd, &info);
  auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes < leastBytes) {
    ::close(fd);
    return {.error =
                path + " has " + std::to_string(bytes) + " bytes, too few: make the card anew"};
  }
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) return {.error = failed("map", path)};
  return {at, bytes, {}};
}

}  // namespace simgpu
