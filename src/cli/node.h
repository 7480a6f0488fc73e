// A connection to this node's tsnoded over its local protocol. Nothing here waits past its
// deadline.
#pragma once

#include <kj/io.h>

#include <chrono>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/places.h"
#include "local/protocol.h"

namespace ts::cli {

class Node {
public:
  using Clock = std::chrono::steady_clock;

  // Connects and agrees on a version. Throws Failure; unreachable says where it looked and why.
  Node(const Place& place, std::chrono::microseconds timeout);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  struct Answer {
    tsl_reply reply{};
    std::vector<kj::AutoCloseFd> fds;
    std::string detail() const;
  };
  // Sends one request and waits for its one answer.
  Answer ask(tsl_type type, const tsl_message& request, std::chrono::microseconds patience);

private:
  void connect();
  struct Until {
    Clock::time_point deadline;
    std::chrono::microseconds patience;  // for the error
  };
  bool isOurs(const tsl_message& answer) const;
  void send(const tsl_message& message, const Until& until);
  void waitFor(short events, const Until& until);
  Failure unreachable(const std::string& cause) const;

  Place place_;
  std::chrono::microseconds timeout_;
  kj::AutoCloseFd socket_;
  std::uint64_t lastRequest_ = 0;
};

}  // namespace ts::cli
