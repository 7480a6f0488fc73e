// Text as a configuration: it is read, or each of its errors has a place.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/config.h"

namespace {

template <class Config>
void load(ts::Loaded<Config> (*how)(const std::string&), const std::string& path) {
  for (const auto& error : how(path).errors) {
    if (!error.text.starts_with(path)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int fd = ::memfd_create("config", MFD_CLOEXEC);
  if (fd < 0 || ::pwrite(fd, data, size, 0) != ssize_t(size)) std::abort();
  auto path = "/proc/self/fd/" + std::to_string(fd);
  load(ts::loadMasterConfig, path);
  load(ts::loadNodeConfig, path);
  ::close(fd);
  return 0;
}
