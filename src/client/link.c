#include "client/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int tsc_connect(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  int result;
  do {
    result = connect(fd, (struct sockaddr*)&address, sizeof address);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return fd;
  const int error = errno;
  close(fd);
  return -error;
}

int tsc_send(int fd, const struct tsl_message* message) {
  const int saved = errno;
  ssize_t sent;
  do {
    sent = send(fd, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  const int error = sent < 0 ? errno : 0; /* whole messages only: never a part of one */
  errno = saved;
  return -error;
}

/* An empty packet and the end of the connection both read as 0. */
static enum tsc_received nothing_or_closed(int fd) {
  struct pollfd state = {.fd = fd, .events = POLLRDHUP};
  if (poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
    return TSC_CLOSED;
  }
  return TSC_TORN;
}

enum tsc_received tsc_receive(int fd, struct tsl_message* message, long* bytes) {
  ssize_t got;
  do {
    got = recv(fd, message, sizeof *message, MSG_DONTWAIT | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  *bytes = got;
  if (got < 0) return errno == EAGAIN ? TSC_NOTHING : TSC_CLOSED;
  if (got == 0) return nothing_or_closed(fd);
  if (got != (ssize_t)sizeof *message || message->header.magic != TSL_MAGIC) return TSC_TORN;
  return TSC_MESSAGE;
}

struct tsl_message tsc_message(enum tsl_type type, uint64_t request) {
  struct tsl_message message;
  memset(&message, 0, sizeof message);
  message.header = (struct tsl_header){
      .magic = TSL_MAGIC, .version = TSL_VERSION, .type = (uint16_t)type, .request = request};
  return message;
}

struct tsl_message tsc_cancel_of(uint64_t acquire) {
  struct tsl_message cancel = tsc_message(TSL_CANCEL, acquire);
  cancel.u.cancel.target = acquire;
  return cancel;
}
