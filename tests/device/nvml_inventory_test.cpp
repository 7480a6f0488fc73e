#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "device/inventory.h"
#include "device/nvml_abi.h"
#include "fake_nvml.h"

using namespace ts;
using Catch::Contains;
using test::FakeNvml;

namespace {

FakeNvml& fresh(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW);
  REQUIRE(library != nullptr);
  FakeNvml* (*script)() = nullptr;
  *reinterpret_cast<void**>(&script) = ::dlsym(library, "fakeNvmlScript");
  REQUIRE(script != nullptr);
  *script() = {};
  return *script();
}

}  // namespace

TEST_CASE("without a driver there is an inventory without GPUs that says why", "[device]") {
  auto inventory = openNvml("libnvidia-ml-not-here.so.1");
  CHECK(inventory->gpus().empty());
  CHECK_THAT(inventory->detail(),
             Contains("no NVIDIA driver found") && Contains("libnvidia-ml-not-here.so.1"));
  CHECK_FALSE(inventory->memory(0));
  CHECK_FALSE(inventory->processes(0));
}

TEST_CASE("P68: a driver that does not answer is named with its error", "[device]") {
  fresh(FAKE_NVML_3).init = 15;
  auto inventory = openNvml(FAKE_NVML_3);
  CHECK(inventory->gpus().empty());
  CHECK_THAT(inventory->detail(), Contains("does not answer: GPU is lost (15)"));
}

TEST_CASE("GPUs are listed in NVML's order with what is known of them", "[device]") {
  fresh(FAKE_NVML_3);
  auto inventory = openNvml(FAKE_NVML_3);
  auto gpus = inventory->gpus();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[1].index == 1);
  CHECK(gpus[1].uuid == "GPU-1");
  CHECK(gpus[1].name == "Fake H200");
  CHECK(gpus[1].busId == "00000000:02:00.0");
  CHECK(gpus[1].totalBytes == 1000);
  CHECK(gpus[1].persistenceMode == true);
  CHECK_FALSE(gpus[1].migMode);  // this driver cannot say
  CHECK(inventory->detail() == "driver 580.95.05");
}

TEST_CASE("a GPU that is lost is not listed, and the others keep their indices", "[device]") {
  fresh(FAKE_NVML_3).secondLost = true;
  auto inventory = openNvml(FAKE_NVML_3);
  REQUIRE(inventory->gpus().size() == 1);
  CHECK_THAT(inventory->detail(), Contains("GPU 1: GPU is lost (15)"));
  CHECK(inventory->memory(0)->freeBytes == 700);
  CHECK_FALSE(inventory->memory(1));
}

TEST_CASE("memory that cannot be read is unknown, never free", "[device]") {
  FakeNvml& fake = fresh(FAKE_NVML_3);
  auto inventory = openNvml(FAKE_NVML_3);
  CHECK(inventory->memory(0)->usedBytes == 300);
  fake.memory = 15;
  CHECK_FALSE(inventory->memory(0));
  fake.list = 15;
  CHECK_FALSE(inventory->processes(0));
  CHECK_FALSE(inventory->memory(2));
}

TEST_CASE("the process list is read with every version of its struct", "[device]") {
  for (const char* path : {FAKE_NVML_1, FAKE_NVML_2, FAKE_NVML_3}) {
    FakeNvml& fake = fresh(path);
    fake.processes = {{.pid = 11, .bytes = 100},
                      {.pid = 12, .bytes = nvml::kNotAvailable},
                      {.pid = 13, .bytes = 0}};
    auto found = openNvml(path)->processes(0);
    REQUIRE(found);
    REQUIRE(found->size() == 3);
    CHECK((*found)[0].pid == 11);
    CHECK((*found)[0].bytes == 100u);
    CHECK((*found)[1].pid == 12);
    CHECK_FALSE((*found)[1].bytes);  // N/A
    CHECK((*found)[2].pid == 13);
    CHECK((*found)[2].bytes == 0u);
    CHECK(openNvml(path)->processes(1)->empty());
  }
}

TEST_CASE("FF-A23: clients of MPS are among the processes, once, whichever list they are in",
          "[device]") {
  FakeNvml& fake = fresh(FAKE_NVML_3);
  fake.processes = {{.pid = 11, .bytes = 100}, {.pid = 12, .bytes = 200}};
  fake.mpsClients = {{.pid = 12, .bytes = 200}, {.pid = 13, .bytes = 300}};
  auto found = openNvml(FAKE_NVML_3)->processes(0);
  REQUIRE(found);
  REQUIRE(found->size() == 3);
  CHECK_FALSE((*found)[0].mps);
  CHECK((*found)[1].mps);
  CHECK((*found)[2].pid == 13);
  CHECK((*found)[2].mps);
  CHECK((*found)[2].bytes == 300u);
}

TEST_CASE("a process list longer than expected is read whole", "[device]") {
  FakeNvml& fake = fresh(FAKE_NVML_3);
  for (unsigned int i = 0; i < 300; ++i) fake.processes.push_back({.pid = 1000 + i, .bytes = i});
  auto found = openNvml(FAKE_NVML_3)->processes(0);
  REQUIRE(found);
  REQUIRE(found->size() == 300);
  CHECK(found->back().pid == 1299);
}

TEST_CASE("declared devices have names and nothing that could be measured", "[device]") {
  auto inventory = declaredInventory(2, "n1");
  auto gpus = inventory->gpus();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].uuid == "declared-n1-0");
  CHECK(gpus[1].index == 1);
  CHECK_FALSE(inventory->memory(0));
  CHECK_FALSE(inventory->processes(0));
  CHECK_THAT(inventory->detail(), Contains("2 declared in the configuration"));
}
