#include "cuda_device.h"

#include "image.h"

namespace demo {
namespace {

constexpr unsigned kBlock = 64;

CUdeviceptr deviceAddress(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

CudaDevice::CudaDevice(int ordinal) : driver_(openDriver()) {
  check(driver_.cuInit(0), "cuInit");
  check(driver_.cuDeviceGet(&device_, ordinal), "device " + std::to_string(ordinal));
  readCard();
  const CUresult made = driver_.cuDevicePrimaryCtxRetain(&context_, device_);
  if (made == kCudaOutOfMemory) throw NoRoom("no room for a context: " + errorName(driver_, made));
  check(made, "cuDevicePrimaryCtxRetain");
  check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  loadKernels();
  check(driver_.cuEventCreate(&first_, 0), "cuEventCreate");
  check(driver_.cuEventCreate(&last_, 0), "cuEventCreate");
}

void CudaDevice::close() {
  finish();
  for (CUevent event : {first_, last_}) check(driver_.cuEventDestroy(event), "cuEventDestroy");
  for (CUdeviceptr address : allocations_) check(driver_.cuMemFree(address), "cuMemFree");
  check(driver_.cuModuleUnload(module_), "cuModuleUnload");
  check(driver_.cuDevicePrimaryCtxRelease(device_), "cuDevicePrimaryCtxRelease");
}

void CudaDevice::readCard() {
  char name[128] = {};
  std::size_t total = 0;
  check(driver_.cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
  check(driver_.cuDeviceTotalMem(&total, device_), "cuDeviceTotalMem");
  check(driver_.cuDriverGetVersion(&card_.driverVersion), "cuDriverGetVersion");
  card_.name = name;
  card_.totalBytes = total;
}

void CudaDevice::loadKernels() {
  const Image image = kernelImage();
  const CUresult loaded = driver_.cuModuleLoadData(&module_, image.data);
  if (loaded == kCudaSuccess) return;
  std::string why = "the kernels do not load: " + errorName(driver_, loaded) + "; ";
  if (image.toolkit[0] == '\0') {
    why +=
        "this program was built without nvcc and runs on simgpu only: build it with -Dnvcc=enabled";
  } else {
    why += std::string("they were built by CUDA ") + image.toolkit + " and need a driver for it, " +
           "this one is for CUDA " + std::to_string(card_.driverVersion / 1000) + "." +
           std::to_string(card_.driverVersion % 1000 / 10);
  }
  throw DeviceError(why);
}

void* CudaDevice::allocate(std::uint64_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result = driver_.cuMemAlloc(&address, bytes);
  if (result == kCudaOutOfMemory) {
    throw NoRoom("no room for " + mebibytes(bytes) + " on " + card_.name + ": " +
                 errorName(driver_, result) + "; " + mebibytes(freeBytes()) + " of " +
                 mebibytes(card_.totalBytes) + " are free");
  }
  check(result, "cuMemAlloc of " + mebibytes(bytes));
  allocations_.push_back(address);
  check(driver_.cuMemsetD8(address, 0, bytes), "cuMemsetD8");
  return reinterpret_cast<void*>(address);
}

std::uint64_t CudaDevice::freeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

void CudaDevice::copyIn(void* to, const void* from, std::size_t bytes) {
  check(driver_.cuMemcpyHtoD(deviceAddress(to), from, bytes), "cuMemcpyHtoD");
}

void CudaDevice::copyOut(void* to, const void* from, std::size_t bytes) {
  check(driver_.cuMemcpyDtoH(to, deviceAddress(from), bytes), "cuMemcpyDtoH");
}

CUfunction CudaDevice::function(const std::string& kernel) {
  CUfunction& known = functions_[kernel];
  if (!known)
    check(driver_.cuModuleGetFunction(&known, module_, kernel.c_str()), "kernel " + kernel);
  return known;
}

void CudaDevice::launch(const char* kernel, const void* args, std::uint32_t threads) {
  const CUfunction found = function(kernel);
  if (!running_) check(driver_.cuEventRecord(first_, nullptr), "cuEventRecord");
  running_ = true;
  void* params[] = {const_cast<void*>(args)};
  check(driver_.cuLaunchKernel(found, (threads + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0,
                               nullptr, params, nullptr),
        std::string("launch of ") + kernel);
}

void CudaDevice::finish() {
  if (!running_) return;
  running_ = false;
  check(driver_.cuEventRecord(last_, nullptr), "cuEventRecord");
  check(driver_.cuEventSynchronize(last_), "cuEventSynchronize");
  float milliseconds = 0;
  check(driver_.cuEventElapsedTime(&milliseconds, first_, last_), "cuEventElapsedTime");
  busy_ += std::chrono::nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6));
}

void CudaDevice::check(CUresult result, const std::string& doing) const {
  if (result == kCudaSuccess) return;
  throw DeviceError(doing + ": " + errorName(driver_, result));
}

}  // namespace demo
