#include "metrics/http_server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "metrics/dashboard.h"

namespace ts {
namespace {

constexpr int kTimeoutSeconds = 10;
constexpr int kMaxHeaderBytes = 8 << 10;

void send(evhttp_request* request, int code, const char* reason, const char* type,
          std::string_view body) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  // One answer for a connection: who asks on and reads nothing must not make them pile up here.
  evhttp_add_header(headers, "Connection", "close");
  evhttp_add_header(headers, "Content-Type", type);
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  evhttp_add_header(headers, "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                    "connect-src 'self'");
  evbuffer_add(evhttp_request_get_output_buffer(request), body.data(), body.size());
  evhttp_send_reply(request, code, reason, nullptr);
}

void sendText(evhttp_request* request, int code, const char* reason, const std::string& body) {
  send(request, code, reason, "text/plain; charset=utf-8", body);
}

std::uint16_t portOf(evutil_socket_t fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace

void HttpServer::Free::operator()(evhttp* http) const {
  evhttp_free(http);
}

HttpServer::HttpServer(event_base* base, const std::string& host, std::uint16_t port,
                       HttpPages pages)
    : http_(evhttp_new(base)), pages_(std::move(pages)) {
  if (http_ == nullptr) throw std::runtime_error("evhttp_new failed");
  evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_timeout(http_.get(), kTimeoutSeconds);
  evhttp_set_max_headers_size(http_.get(), kMaxHeaderBytes);
  evhttp_set_max_body_size(http_.get(), 0);
  evhttp_set_gencb(
      http_.get(),
      [](evhttp_request* request, void* self) { static_cast<HttpServer*>(self)->answer(request); },
      this);
  auto* bound = evhttp_bind_socket_with_handle(http_.get(), host.c_str(), port);
  if (bound == nullptr) {
    throw std::runtime_error("cannot listen for HTTP on " + host + ":" + std::to_string(port) +
                             ": " + std::strerror(errno) +
                             "; set `http` to another address, or to \"\"");
  }
  port_ = portOf(evhttp_bound_socket_get_fd(bound));
}

HttpServer::~HttpServer() = default;

void HttpServer::answer(evhttp_request* request) {
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  const char* rawPath = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
  std::string_view path = rawPath == nullptr ? "" : rawPath;
  try {
    if (path == "/metrics" && pages_.metrics) {
      return send(request, HTTP_OK, "OK", "text/plain; version=0.0.4; charset=utf-8",
                  pages_.metrics());
    }
    if (path == "/status.json" && pages_.status) {
      return send(request, HTTP_OK, "OK", "application/json", pages_.status());
    }
    if (path == "/" && pages_.status) {
      return send(request, HTTP_OK, "OK", "text/html; charset=utf-8", dashboardPage());
    }
    if (path == "/healthz") {
      std::string why = pages_.health ? pages_.health() : "";
      if (why.empty()) return sendText(request, HTTP_OK, "OK", "ok\n");
      return sendText(request, HTTP_SERVUNAVAIL, "Service Unavailable", why + "\n");
    }
    sendText(request, HTTP_NOTFOUND, "Not Found",
             "there is /metrics and /healthz here" +
                 std::string(pages_.status ? ", / and /status.json" : "") + "\n");
  } catch (const std::exception& e) {
    // A page that cannot be made must not end the daemon: this is a C callback.
    sendText(request, HTTP_INTERNAL, "Internal Server Error", std::string(e.what()) + "\n");
  }
}

}  // namespace ts
