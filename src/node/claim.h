// Which devices a participant claims, from a text like CUDA_VISIBLE_DEVICES. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ts::node {

// A device as a text may name it.
struct NamedDevice {
  std::uint32_t index = 0;
  std::string uuid;     // "GPU-…"
  std::string trouble;  // why no state can be moved off it; "" where it can
};

struct Claim {
  bool ok = false;
  std::vector<std::uint32_t> devices;  // sorted, without duplicates; empty: the text says "none"
  std::string why;                     // not ok: a sentence with the value that caused it
};

// "" claims all; "none", "-1" and "NoDevFiles" claim nothing; else indices and UUIDs (or unique
// beginnings of them) between commas. Other than CUDA, which ignores everything after the first
// mistake, a mistake is refused: half a claim is a job that meets strangers.
Claim parseClaim(std::string_view text, const std::vector<NamedDevice>& present);

}  // namespace ts::node
