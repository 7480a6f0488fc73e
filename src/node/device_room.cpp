#include "node/device_room.h"

#include <algorithm>

#include "node/words.h"

namespace ts::node {
namespace {

Outcome tooFull(std::uint32_t device, Bytes need, Bytes free, const std::string& who,
                const std::string& holders) {
  auto out =
      refusal(Cause::NoDeviceMemory, "device " + std::to_string(device) + " has " +
                                         std::to_string(free) + " bytes free, " + who + " needs " +
                                         std::to_string(need) + "; it is held by " + holders);
  out.need = need;
  out.free = free;
  return out;
}

Outcome unmeasured(std::uint32_t device, Bytes need, const Scan& scan) {
  auto out = refusal(Cause::NoDeviceMemory, scan.whyUnmeasured(device));
  out.need = need;
  return out;
}

}  // namespace

Outcome roomFor(const DeviceBytes& need, const std::string& who, Registry& registry,
                const Scan& scan) {
  for (const auto& [device, bytes] : need) {
    auto memory = scan.memory.find(device);
    if (memory == scan.memory.end()) return unmeasured(device, bytes, scan);
    auto free = memory->second.freeBytes;
    if (free < bytes) return tooFull(device, bytes, free, who, holdersOf(registry, scan, device));
  }
  return {};
}

std::string holdersOf(Registry& registry, const Scan& scan, std::uint32_t device) {
  std::vector<std::pair<Bytes, std::string>> holders;
  for (const auto& seen : scan.users) {
    auto it = seen.bytes.find(device);
    bool known = it != seen.bytes.end();
    if (!known && !seen.unmeasured.contains(device)) continue;
    auto* m = registry.memberOf(seen.process.identity);
    auto job = m ? text(m->job) : std::string("no job");
    holders.emplace_back(known ? it->second : 0,
                         text(seen.process.identity) + " (" + job + ") " +
                             (known ? std::to_string(it->second) : "an unknown number of") +
                             " bytes");
  }
  std::ranges::sort(holders, std::greater{});
  std::string out;
  for (const auto& [bytes, words] : holders) out += (out.empty() ? "" : ", ") + words;
  return out.empty() ? "nobody that the driver names" : out;
}

}  // namespace ts::node
