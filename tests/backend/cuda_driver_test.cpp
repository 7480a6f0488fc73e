#include "backend/cuda_driver.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "backend/cuda_backend.h"
#include "cuda_script.h"

using namespace ts;
using Catch::Contains;
using cuda::openDriver;
using cuda::Result;
using test::CudaScript;

namespace {

// A file that looks like /proc/driver/nvidia/version.
class ModuleFile {
public:
  explicit ModuleFile(const std::string& line) {
    std::ofstream(path_) << line << "\nGCC version\n";
  }
  ~ModuleFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

private:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("timeslice-module-" + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("without a driver the backend says what it looked for and what to do", "[backend]") {
  CudaBackend backend(openDriver({.library = "libcuda-not-here.so.1"}));
  Probe probe = backend.probe();
  CHECK_FALSE(probe.usable);
  CHECK_THAT(probe.detail,
             Contains("libcuda-not-here.so.1") && Contains("install the NVIDIA driver"));
  test::Child child;
  BackendOutcome outcome = backend.quiesce({.pid = child.pid()}, test::inFiveMinutes());
  CHECK(outcome.code == BackendOutcome::Code::Unsupported);
  CHECK_THAT(outcome.detail, Contains("libcuda-not-here.so.1"));
}

TEST_CASE(
    "FF-A14: a driver without the checkpoint API is named with what it lacks and what is needed",
    "[backend]") {
  ModuleFile file("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 2024");
  CudaBackend backend(openDriver({.library = FAKE_CUDA_550, .kernelModule = file.path()}));
  Probe probe = backend.probe();
  CHECK_FALSE(probe.usable);
  CHECK_THAT(probe.detail, Contains("driver 550.54.14") && Contains("has no checkpoint API") &&
                               Contains("cuCheckpointProcessLock") && Contains("needs driver 570"));
}

TEST_CASE("the open kernel module's version line is understood too", "[backend]") {
  ModuleFile file(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build");
  CHECK(openDriver({.library = FAKE_CUDA, .kernelModule = file.path()})->kernelModule ==
        "580.95.05");
}

TEST_CASE("a driver that does not start is not usable, and its own error says why", "[backend]") {
  CudaScript script;
  script.fake.init = Result::NotPermitted;
  CudaBackend backend(openDriver({.library = FAKE_CUDA, .kernelModule = ""}));
  CHECK_FALSE(backend.probe().usable);
  CHECK_THAT(backend.probe().detail, Contains("cuInit: CUDA_ERROR_NOT_PERMITTED (800)"));
}

TEST_CASE("a usable driver reports its version and what it can do", "[backend]") {
  CudaScript script;
  Probe probe = script.backend.probe();
  CHECK(probe.usable);
  CHECK(probe.driverVersion == 12080);
  CHECK_THAT(probe.detail, Contains("CUDA 12.8"));
  CHECK(probe.features == std::vector<std::string>{"checkpoint", "restore-thread-id"});
}

TEST_CASE("an error that the driver has no name for keeps its number", "[backend]") {
  CudaScript script;
  CHECK(openDriver({.library = FAKE_CUDA})->nameOf(static_cast<Result>(777)) == "error 777");
}
