// A Device over the CUDA driver API.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device.h"
#include "driver.h"

namespace demo {

struct CardFacts {
  std::string name;
  int driverVersion = 0;  // 13000 for CUDA 13.0
  std::uint64_t totalBytes = 0;
};

class CudaDevice final : public Device {
public:
  explicit CudaDevice(int ordinal);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // Gives everything back. Not done by a destructor: that may run after a failure, while another
  // job has the turn, and then any call to the driver would wait for it. The end of the process
  // does as well.
  void close();

  const CardFacts& card() const { return card_; }
  std::uint64_t freeBytes() const;
  void finish() override;
  std::chrono::nanoseconds busy() const override { return busy_; }

private:
  void* allocate(std::uint64_t bytes) override;
  void copyIn(void* to, const void* from, std::size_t bytes) override;
  void copyOut(void* to, const void* from, std::size_t bytes) override;
  void launch(const char* kernel, const void* args, std::uint32_t threads) override;

  void readCard();
  void loadKernels();
  CUfunction function(const std::string& kernel);
  void check(CUresult result, const std::string& doing) const;

  Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CardFacts card_;
  std::map<std::string, CUfunction> functions_;
  std::vector<CUdeviceptr> allocations_;
  // Kernels are launched without a pause from `first_` to `last_`, so what is between is their
  // time.
  CUevent first_ = nullptr;
  CUevent last_ = nullptr;
  bool running_ = false;
  std::chrono::nanoseconds busy_{0};
};

}  // namespace demo
