#include "metrics/http_server.h"

#include <kj/exception.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "support/loop.h"

using namespace ts;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::Loop;

namespace {

// What the server answers to these bytes, up to the end of the connection.
std::string ask(Loop& l, const std::string& host, std::uint16_t port, const std::string& request) {
  auto stream = l.address(kj::str(host.c_str(), ":", port))->connect().wait(l.scope);
  stream->write(request.data(), request.size()).wait(l.scope);
  auto text = stream->readAllText().wait(l.scope);
  return std::string(text.begin(), text.size());
}

std::string get(Loop& l, const HttpServer& server, const std::string& path) {
  return ask(l, "127.0.0.1", server.port(), "GET " + path + " HTTP/1.0\r\n\r\n");
}

}  // namespace

TEST_CASE("pages answer on the loop, rendered when asked for", "[metrics]") {
  Loop l;
  int scrapes = 0;
  HttpServer server(l.base.get(), "127.0.0.1", 0,
                    {.metrics = [&] { return "scrapes " + std::to_string(++scrapes) + "\n"; },
                     .status = [] { return std::string("{\"jobs\":[]}"); }});
  CHECK_THAT(get(l, server, "/metrics"), StartsWith("HTTP/1.0 200") &&
                                             Contains("text/plain; version=0.0.4") &&
                                             Contains("\r\n\r\nscrapes 1\n"));
  CHECK_THAT(get(l, server, "/metrics?x=1"), Contains("scrapes 2\n"));
  CHECK_THAT(get(l, server, "/status.json"),
             Contains("application/json") && Contains("{\"jobs\":[]}"));
  CHECK_THAT(get(l, server, "/"),
             Contains("text/html") && Contains("<title>timeslice</title>") && Contains("</html>"));
  CHECK_THAT(get(l, server, "/healthz"), StartsWith("HTTP/1.0 200") && Contains("ok\n"));
}

TEST_CASE("a daemon without a status has no dashboard, and says what there is", "[metrics]") {
  Loop l;
  HttpServer server(l.base.get(), "127.0.0.1", 0, {.metrics = [] { return std::string("x 1\n"); }});
  CHECK_THAT(get(l, server, "/"), StartsWith("HTTP/1.0 404") && Contains("/metrics and /healthz"));
  CHECK_THAT(get(l, server, "/status.json"), StartsWith("HTTP/1.0 404"));
}

TEST_CASE("P65: what is wrong with a daemon is told by /healthz", "[metrics]") {
  Loop l;
  std::string why = "no node has connected";
  HttpServer server(l.base.get(), "127.0.0.1", 0, {.health = [&] { return why; }});
  CHECK_THAT(get(l, server, "/healthz"), StartsWith("HTTP/1.0 503") && Contains(why));
  why = "";
  CHECK_THAT(get(l, server, "/healthz"), StartsWith("HTTP/1.0 200"));
}

TEST_CASE("a page that cannot be made is an answer, not the end", "[metrics]") {
  Loop l;
  HttpServer server(l.base.get(), "127.0.0.1", 0,
                    {.metrics = []() -> std::string { throw std::runtime_error("boom"); }});
  CHECK_THAT(get(l, server, "/metrics"), StartsWith("HTTP/1.0 500") && Contains("boom"));
  CHECK_THAT(get(l, server, "/healthz"), StartsWith("HTTP/1.0 200"));
}

TEST_CASE("FF-E9: a connection gets one answer, however much it asks", "[metrics]") {
  Loop l;
  int rendered = 0;
  HttpServer server(l.base.get(), "127.0.0.1", 0, {.metrics = [&] {
                      ++rendered;
                      return std::string("x 1\n");
                    }});
  std::string one = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", many;
  for (int i = 0; i < 50; ++i) many += one;
  // It ends by itself: nobody says that it is to be closed.
  CHECK_THAT(ask(l, "127.0.0.1", server.port(), one), Contains("Connection: close"));
  try {
    ask(l, "127.0.0.1", server.port(), many);
  } catch (const kj::Exception& e) {  // closed with questions unread
    CHECK(e.getType() == kj::Exception::Type::DISCONNECTED);
  }
  CHECK(rendered == 2);
}

TEST_CASE("other methods, nonsense and endless headers are refused", "[metrics]") {
  Loop l;
  HttpServer server(l.base.get(), "127.0.0.1", 0, {});
  CHECK_THAT(ask(l, "127.0.0.1", server.port(), "POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n"),
             Contains(" 501 Not Implemented"));
  CHECK_THAT(ask(l, "127.0.0.1", server.port(), "nonsense\r\n\r\n"), !Contains(" 200 OK"));
  std::string endless = "GET / HTTP/1.0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n";
  CHECK_THAT(ask(l, "127.0.0.1", server.port(), endless), !Contains(" 200 OK"));
  CHECK_THAT(get(l, server, "/healthz"), StartsWith("HTTP/1.0 200"));
}

TEST_CASE("the server listens on IPv6 too", "[metrics]") {
  Loop l;
  std::unique_ptr<HttpServer> server;
  try {
    server = std::make_unique<HttpServer>(l.base.get(), "::1", 0, HttpPages{});
  } catch (const std::runtime_error& e) {
    WARN("no IPv6 here: " << e.what());
    return;
  }
  CHECK_THAT(ask(l, "[::1]", server->port(), "GET /healthz HTTP/1.0\r\n\r\n"),
             StartsWith("HTTP/1.0 200"));
}

TEST_CASE("an address that is taken is named in the error", "[metrics]") {
  Loop l;
  HttpServer first(l.base.get(), "127.0.0.1", 0, {});
  CHECK_THROWS_WITH(
      HttpServer(l.base.get(), "127.0.0.1", first.port(), {}),
      Contains("cannot listen for HTTP on 127.0.0.1:" + std::to_string(first.port())));
}
