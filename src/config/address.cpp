#include "config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

namespace ts {

bool parseHostPort(const std::string& text, HostPort& out, std::string& why) {
  auto colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]") != std::string::npos)) {
    why = "\"" + text +
          "\" is no address; write HOST:PORT, like \"127.0.0.1:6830\" or \"[::1]:6830\"";
    return false;
  }
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  std::uint16_t port = 0;
  auto [stop, error] = std::from_chars(begin, end, port);
  if (error != std::errc{} || stop != end || begin == end) {
    why = "\"" + text + "\" has no port from 0 to 65535 after its last colon; write HOST:PORT";
    return false;
  }
  out = {host, port};
  return true;
}

bool isLoopbackHost(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six) != 0;
  return host == "localhost";
}

}  // namespace ts
