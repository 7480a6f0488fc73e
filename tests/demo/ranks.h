// Ranks of one job as threads of the test, over real sockets on loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "peers.h"
#include "sockets.h"

namespace demo {

struct Listener {
  int fd = listenAt("127.0.0.1:0");
  std::string address() const {
    sockaddr_in name = {};
    socklen_t length = sizeof name;
    getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length);
    return "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
};

// Runs `body` once per rank and returns when all have ended.
inline void asRanks(unsigned world, const std::function<void(Peers&)>& body) {
  const Listener listener;  // rank 0 closes it
  std::vector<std::jthread> ranks;
  for (unsigned rank = 0; rank < world; ++rank) {
    ranks.emplace_back([&listener, &body, rank, world] {
      Meeting meeting;
      meeting.rank = rank;
      meeting.world = world;
      meeting.address = listener.address();
      if (rank == 0) meeting.listenFd = listener.fd;
      Peers peers(meeting);
      body(peers);
    });
  }
}

}  // namespace demo
