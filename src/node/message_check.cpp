#include "node/message_check.h"

#include <algorithm>
#include <cstring>

#include "node/local_versions.h"

namespace ts::node {
namespace {

template <std::size_t N>
bool ends(const char (&field)[N]) {
  return std::memchr(field, 0, N) != nullptr;
}

bool textsEnd(const tsl_message& m) {
  switch (m.header.type) {
    case TSL_CLAIM:
      return ends(m.u.claim.devices);
    case TSL_JOIN:
      return ends(m.u.join.group) && ends(m.u.join.job) && ends(m.u.join.backend);
    case TSL_ACQUIRE:
      return ends(m.u.acquire.phase);
    case TSL_STEP_BEGIN:
    case TSL_STEP_END:
    case TSL_OUTLOOK:
    case TSL_ACCOUNT:
      return ends(m.u.step.group) && ends(m.u.step.job) && ends(m.u.step.backend);
    default:
      return true;
  }
}

std::string hex(std::uint32_t value) {
  std::string out = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
  return out;
}

bool isRequest(std::uint16_t type) {
  return type >= TSL_HELLO && type <= TSL_ACCOUNT;
}

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

std::optional<Rejection> checkMessage(const tsl_message& m, std::size_t size, bool cut,
                                      std::uint64_t last) {
  const auto& h = m.header;
  auto reject = [&](std::uint64_t request, std::string why) {
    return Rejection{TSL_PROTOCOL, request, std::move(why)};
  };
  if (cut) {
    return reject(0, "a message of more than " + std::to_string(sizeof(m)) +
                         " bytes, or with descriptors; every message has exactly as many and none");
  }
  if (size != sizeof(m)) {
    return reject(0, "a message of " + std::to_string(size) + " bytes; every message has " +
                         std::to_string(sizeof(m)));
  }
  if (h.magic != TSL_MAGIC) {
    return reject(0, "the magic number is " + hex(h.magic) + ", not " + hex(TSL_MAGIC));
  }
  if (h.type != TSL_HELLO && !commonVersion(kLocalVersions, {h.version, h.version})) {
    return Rejection{TSL_VERSION_MISMATCH, h.request, versionsDiffer({h.version, h.version})};
  }
  if (!isRequest(h.type))
    return reject(h.request, "unknown message type " + std::to_string(h.type));
  if (h.request == 0) return reject(0, "request number 0");
  if (isOrdered(h.type) && h.request <= last) {
    return reject(h.request, "request number " + std::to_string(h.request) +
                                 " does not grow; the last was " + std::to_string(last));
  }
  if (isOrdered(h.type) && last == 0 && h.type != TSL_HELLO) {
    return reject(h.request,
                  "the first message is of type " + std::to_string(h.type) + ", not HELLO");
  }
  if (!textsEnd(m)) {
    return reject(h.request,
                  "a text without an end in a message of type " + std::to_string(h.type));
  }
  return {};
}

bool isOrdered(std::uint16_t type) {
  return type != TSL_CANCEL;
}

bool isName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, isNameCharacter);
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

}  // namespace ts::node
