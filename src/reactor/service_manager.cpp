#include "reactor/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
namespace ts {
namespace {

std::string take(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  bool whole = error == std::errc{} && stop == end && value > 0;
  return whole ? std::optional(value) : std::nullopt;
}

// Length 0: there can be no such socket. A name that begins with @ is in the abstract namespace.
socklen_t addressOf(const std::string& socket, sockaddr_un& address) {
  bool named = socket.starts_with('/') || socket.starts_with('@');
  if (!named || socket.size() >= sizeof address.sun_path) return 0;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (socket.front() == '@') address.sun_path[0] = '\0';
  return socklen_t(offsetof(sockaddr_un, sun_path) + socket.size());
}

}  // namespace

ServiceEnvironment takeServiceEnvironment() {
  ServiceEnvironment environment{.socket = take("NOTIFY_SOCKET")};
  auto period = number(take("WATCHDOG_USEC"));
  auto whose = take("WATCHDOG_PID");  // another's when a wrapper started us
  bool ours = whose.empty() || number(whose) == ::getpid();
  if (period && ours) environment.watchdog = std::chrono::microseconds(*period);
  return environment;
}

ServiceManager::ServiceManager(ServiceEnvironment environment, kj::Timer& timer)
    : environment_(std::move(environment)), timer_(timer) {
  if (environment_.socket.empty()) return;
  fd_ = kj::AutoCloseFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

std::string ServiceManager::ready() {
  if (environment_.socket.empty()) return "";
  if (int error = send("READY=1", 0)) {
    return "NOTIFY_SOCKET " + environment_.socket + ": " + std::strerror(error);
  }
  if (environment_.watchdog) {
    alive_ = stayAlive().eagerlyEvaluate(nullptr);
  }
  return "";
}

void ServiceManager::stopping() {
  send("STOPPING=1", MSG_DONTWAIT);
}

// One that is lost, for the manager does not read, is made up for by the next.
kj::Promise<void> ServiceManager::stayAlive() {
  send("WATCHDOG=1", MSG_DONTWAIT);
  auto half = std::max<std::int64_t>(environment_.watchdog->count() / 2, 1);
  return timer_.afterDelay(half * kj::MICROSECONDS).then([this] { return stayAlive(); });
}

int ServiceManager::send(const std::string& state, int flags) const {
  if (environment_.socket.empty()) return 0;
  sockaddr_un address{};
  socklen_t length = addressOf(environment_.socket, address);
  if (length == 0) return EINVAL;
  auto sent = ::sendto(fd_, state.data(), state.size(), flags | MSG_NOSIGNAL,
                       reinterpret_cast<const sockaddr*>(&address), length);
  return sent < 0 ? errno : 0;
}

}  // namespace ts
