#include "backend/cuda_driver.h"

#include <dlfcn.h>

#include <fstream>
#include <sstream>

namespace ts::cuda {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed …": the first word of digits and
// dots.
std::string readKernelModule(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::string word;
  while (words >> word) {
    bool number = word.find('.') != std::string::npos &&
                  word.find_first_not_of("0123456789.") == std::string::npos;
    if (number) return word;
  }
  return {};
}

template <class F>
void find(void* library, const char* name, F& out, std::string& missing) {
  *reinterpret_cast<void**>(&out) = dlsym(library, name);
  if (out == nullptr) missing += std::string(missing.empty() ? "" : ", ") + name;
}

std::string findAll(void* library, Driver& out) {
  std::string missing;
  std::string optional;
  find(library, "cuInit", out.init, missing);
  find(library, "cuDriverGetVersion", out.driverGetVersion, missing);
  find(library, "cuGetErrorName", out.getErrorName, optional);
  find(library, "cuCheckpointProcessLock", out.lock, missing);
  find(library, "cuCheckpointProcessCheckpoint", out.checkpoint, missing);
  find(library, "cuCheckpointProcessRestore", out.restore, missing);
  find(library, "cuCheckpointProcessUnlock", out.unlock, missing);
  find(library, "cuCheckpointProcessGetState", out.getState, missing);
  find(library, "cuCheckpointProcessGetRestoreThreadId", out.getRestoreThreadId, optional);
  return missing;
}

// Why this driver cannot be used; empty if it can.
std::string open(const std::string& path, Driver& out) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return "cannot load " + path + " (" + (why != nullptr ? why : "no reason given") +
           "); install the NVIDIA driver, or set backend = \"none\"";
  }
  std::string missing = findAll(library, out);
  if (out.driverGetVersion != nullptr && out.driverGetVersion(&out.version) != Result::Success)
    out.version = 0;
  if (!missing.empty()) {
    return out.versionText() + " has no checkpoint API (missing: " + missing +
           "); needs driver 570 or newer";
  }
  Result result = out.init(0);
  if (result != Result::Success)
    return out.versionText() + " does not start: cuInit: " + out.nameOf(result);
  return {};
}

}  // namespace

std::string Driver::nameOf(Result result) const {
  const char* name = nullptr;
  bool known = getErrorName != nullptr && getErrorName(result, &name) == Result::Success;
  std::string number = std::to_string(static_cast<int>(result));
  return known && name != nullptr ? std::string(name) + " (" + number + ")" : "error " + number;
}

std::string Driver::versionText() const {
  std::string cuda =
      "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  return kernelModule.empty() ? "driver of " + cuda : "driver " + kernelModule + " (" + cuda + ")";
}

std::shared_ptr<const Driver> openDriver(const DriverPlaces& places) {
  auto out = std::make_shared<Driver>();
  out->kernelModule = readKernelModule(places.kernelModule);
  out->error = open(places.library, *out);
  return out;
}

}  // namespace ts::cuda
