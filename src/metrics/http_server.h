// A few pages over HTTP on the daemon's own loop: /metrics, /healthz, the dashboard and its JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct event_base;
struct evhttp;
struct evhttp_request;

namespace ts {

// Rendered on the loop's thread when asked for. A page without a function is not there (404).
struct HttpPages {
  std::function<std::string()> metrics;  // text for Prometheus
  std::function<std::string()> status;   // JSON; with it comes the dashboard at /
  // "" when all is well, else why not (503): for load balancers and systemd.
  std::function<std::string()> health;
};

// Only GET and HEAD; slow or talkative clients lose their connection. Throws std::runtime_error
// with the address when it cannot listen.
class HttpServer {
public:
  // `host`: a name or an IPv4 or IPv6 address; port 0: any free one.
  HttpServer(event_base* base, const std::string& host, std::uint16_t port, HttpPages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;  // evhttp holds our address
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }

private:
  void answer(evhttp_request* request);

  struct Free {
    void operator()(evhttp* http) const;
  };
  std::unique_ptr<evhttp, Free> http_;
  HttpPages pages_;
  std::uint16_t port_ = 0;
};

}  // namespace ts
