#include "client/support.h"

#include <poll.h>

namespace ts::test {

void waitReadable(ts_client* client) {
  pollfd fd{ts_fd(client), POLLIN, 0};
  REQUIRE(fd.fd >= 0);
  while (::poll(&fd, 1, -1) != 1) {
  }
}

}  // namespace ts::test
