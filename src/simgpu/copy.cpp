#include "simgpu/copy.h"

#include <cstring>

#include "simgpu/process_id.h"

namespace simgpu {

CUresult checkCopy(Driver& driver, const Copy& copy, Ends ends) {
  bool toDevice = ends == Ends::HostToDevice || ends == Ends::DeviceToDevice;
  bool fromDevice = ends == Ends::DeviceToHost || ends == Ends::DeviceToDevice;
  bool good = copy.bytes == 0 || (copy.to != 0 && copy.from != 0);
  if (toDevice) good = good && driver.memory.covers(copy.to, copy.bytes);
  if (fromDevice) good = good && driver.memory.covers(copy.from, copy.bytes);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

void moveBytes(Driver& driver, Card& card, const Copy& copy) {
  auto* to = reinterpret_cast<std::byte*>(copy.to);
  const auto* from = reinterpret_cast<const std::byte*>(copy.from);
  bool toDevice = driver.memory.find(copy.to).has_value();
  bool fromDevice = driver.memory.find(copy.from).has_value();
  if (toDevice == fromDevice) {  // inside the card, or host to host: no link
    std::memmove(to, from, copy.bytes);
    return;
  }
  card.transfer(toDevice ? Direction::HostToDevice : Direction::DeviceToHost, copy.bytes,
                [=](auto offset, auto bytes) { std::memcpy(to + offset, from + offset, bytes); });
}

}  // namespace

void runCopy(Driver& driver, Stream& stream, const Copy& copy) {
  moveBytes(driver, *stream.context->card, copy);
  stream.timeNs = nowNs();
}

}  // namespace simgpu
