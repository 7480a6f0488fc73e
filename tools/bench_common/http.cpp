#include "bench_common/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_common/process.h"

namespace ts::bench {

std::string httpGet(const std::string& address, const std::string& path) {
  const auto colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    die("no answer at " + address);
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: bench\r\n\r\n";
  if (::write(fd, request.data(), request.size()) < 0) die("cannot ask " + address);
  std::string answer;
  char piece[65536];
  ssize_t got;
  do {
    untilReadable(fd, "an answer to GET " + path + " at " + address);
    got = ::read(fd, piece, sizeof piece);
    if (got > 0) answer.append(piece, std::size_t(got));
  } while (got > 0);
  ::close(fd);
  const auto body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

}  // namespace ts::bench
