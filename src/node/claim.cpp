#include "node/claim.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ts::node {
namespace {

std::string_view trimmed(std::string_view text) {
  auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool isNothing(std::string_view text) {
  return text == "none" || text == "-1" || text == "NoDevFiles";
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::string presentText(const std::vector<NamedDevice>& present) {
  if (present.empty()) return "this node has no devices";
  std::string out = "this node has devices";
  for (const auto& d : present) out += " " + std::to_string(d.index);
  return out;
}

std::optional<std::uint32_t> asIndex(std::string_view text) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

struct Found {
  std::optional<std::uint32_t> index;
  std::string why;
};

Found byIndex(std::uint32_t wanted, const std::vector<NamedDevice>& present) {
  auto match = [&](const NamedDevice& d) { return d.index == wanted; };
  if (std::ranges::any_of(present, match)) return {wanted, ""};
  return {{}, "no device " + std::to_string(wanted) + " (" + presentText(present) + ")"};
}

Found byUuid(std::string_view wanted, const std::vector<NamedDevice>& present) {
  Found found;
  for (const auto& d : present) {
    if (!std::string_view(d.uuid).starts_with(wanted)) continue;
    if (found.index) return {{}, quoted(wanted) + " is the beginning of several devices' UUIDs"};
    found.index = d.index;
  }
  if (!found.index) found.why = "no device " + quoted(wanted) + " (" + presentText(present) + ")";
  return found;
}

Found find(std::string_view token, const std::vector<NamedDevice>& present) {
  if (token.empty()) return {{}, "an empty place between commas"};
  if (token.starts_with("MIG-")) return {{}, quoted(token) + ": MIG devices cannot be shared"};
  if (auto index = asIndex(token)) return byIndex(*index, present);
  return byUuid(token, present);
}

}  // namespace

Claim parseClaim(std::string_view text, const std::vector<NamedDevice>& present) {
  Claim claim{.ok = true};
  text = trimmed(text);
  if (isNothing(text)) return claim;
  if (text.empty()) {
    for (const auto& d : present) claim.devices.push_back(d.index);
    std::ranges::sort(claim.devices);
    return claim;
  }
  for (std::size_t at = 0; at <= text.size();) {
    auto comma = std::min(text.find(',', at), text.size());
    auto found = find(trimmed(text.substr(at, comma - at)), present);
    if (!found.index) return {.ok = false, .why = found.why + " in the claim " + quoted(text)};
    claim.devices.push_back(*found.index);
    at = comma + 1;
  }
  std::ranges::sort(claim.devices);
  claim.devices.erase(std::unique(claim.devices.begin(), claim.devices.end()), claim.devices.end());
  return claim;
}

}  // namespace ts::node
