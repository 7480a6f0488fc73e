// "HOST:PORT" as it stands in configuration and on command lines; IPv6 in brackets: "[::1]:6830".
#pragma once

#include <cstdint>
#include <string>

namespace ts {

struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};

// False: `why` says what is wrong with it and how to write it.
bool parseHostPort(const std::string& text, HostPort& out, std::string& why);
// 127.0.0.0/8, ::1 and localhost: nobody outside this machine reaches it.
bool isLoopbackHost(const std::string& host);

}  // namespace ts
