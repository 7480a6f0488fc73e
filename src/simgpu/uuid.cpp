#include "simgpu/uuid.h"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>

namespace simgpu {

CUuuid uuidFromText(const std::string& text) {
  std::string digits;
  for (char c : text.substr(text.starts_with("GPU-") ? 4 : 0))
    if (c != '-') digits += c;
  digits.resize(32, '0');
  CUuuid uuid{};
  for (unsigned i = 0; i < sizeof uuid.bytes; ++i)
    uuid.bytes[i] = static_cast<char>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
  return uuid;
}

std::string freshUuid() {
  unsigned char r[16] = {};
  if (::getrandom(r, sizeof r, 0) != static_cast<ssize_t>(sizeof r)) r[0] = 1;
  char text[64];
  std::snprintf(text, sizeof text,
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0],
                r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13],
                r[14], r[15]);
  return text;
}

}  // namespace simgpu
