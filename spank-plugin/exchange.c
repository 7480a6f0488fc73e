#include "exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/link.h"

enum { kFullBacklogMs = 10 };

struct talk {
  int fd;
  int64_t deadline;
  int timeout_ms;
  const char* socket;
  struct tsp_answer* out;
};

static int left_ms(const struct talk* t) {
  const int64_t left = (t->deadline - tsc_now() + TSC_MS - 1) / TSC_MS;
  return left > 0 ? (int)left : 0;
}

static bool fail(struct talk* t, const char* what, int error) {
  snprintf(t->out->why, sizeof t->out->why, "%s at %s%s%s%s", what, t->socket,
           error != 0 ? " (" : "", error != 0 ? strerror(error) : "", error != 0 ? ")" : "");
  return false;
}

static bool late(struct talk* t) {
  snprintf(t->out->why, sizeof t->out->why,
           "the node daemon at %s has not answered within %d ms; see its log", t->socket,
           t->timeout_ms);
  return false;
}

static bool open_line(struct talk* t) {
  for (;;) {
    t->fd = tsc_connect(t->socket);
    if (t->fd >= 0) return true;
    if (t->fd != -EAGAIN) {
      fail(t, "there is no node daemon", -t->fd);
      strncat(t->out->why, "; it is started with: systemctl start tsnoded.socket tsnoded",
              sizeof t->out->why - strlen(t->out->why) - 1);
      return false;
    }
    if (left_ms(t) == 0) return late(t);
    poll(NULL, 0, kFullBacklogMs);
  }
}

static bool say(struct talk* t, const struct tsl_message* message) {
  const int sent = tsc_send(t->fd, message);
  return sent == 0 || fail(t, "the connection broke while sending to the node daemon", -sent);
}

/* The whole file from its beginning. */
static bool read_text(struct talk* t, int file, struct tsp_text* text) {
  size_t at = 0;
  ssize_t got = 0;
  do {
    got = pread(file, text->bytes + at, text->room - at, (off_t)at);
    if (got > 0) at += (size_t)got;
  } while (got > 0 && at < text->room);
  if (got < 0) return fail(t, "cannot read the answer of the node daemon", errno);
  if (at == text->room) return fail(t, "too long is the answer of the node daemon", 0);
  text->bytes[at] = '\0';
  return true;
}

static int descriptor_in(struct msghdr* header) {
  for (struct cmsghdr* c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
  }
  return -1;
}

/* False: no message came, and `why` says so. `*file` is to be closed all the same. Whoever speaks
 * without end is late, too. */
static bool next_message(struct talk* t, struct tsl_message* message, int* file) {
  struct pollfd ready = {.fd = t->fd, .events = POLLIN};
  int count = 0;
  do {
    count = left_ms(t) == 0 ? 0 : poll(&ready, 1, left_ms(t));
  } while (count < 0 && errno == EINTR);
  if (count == 0) return late(t);
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
  struct msghdr header = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const ssize_t got = recvmsg(t->fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return fail(t, "the connection broke to the node daemon", errno);
  *file = descriptor_in(&header);
  if (got == 0) return fail(t, "the connection was closed by the node daemon", 0);
  if (got != (ssize_t)sizeof *message || message->header.magic != TSL_MAGIC) {
    return fail(t, "there is something that does not speak the protocol", 0);
  }
  message->u.reply.detail[sizeof message->u.reply.detail - 1] = '\0';
  return true;
}

/* The reply to `request`; what else may come meanwhile is not for us. */
static bool hear(struct talk* t, uint64_t request, struct tsp_text* text) {
  struct tsl_message message;
  int file = -1;
  bool came = false;
  bool ours = false;
  while (!ours) {
    if (file >= 0) close(file);
    file = -1;
    came = next_message(t, &message, &file);
    ours = !came || (message.header.type == TSL_REPLY && message.header.request == request);
  }
  if (!came) {
    if (file >= 0) close(file);
    return false;
  }
  t->out->reply = message.u.reply;
  bool ok = message.u.reply.status == TSL_OK;
  if (!ok) {
    const char* detail = message.u.reply.detail;
    const bool older = message.u.reply.status == TSL_PROTOCOL;
    snprintf(t->out->why, sizeof t->out->why, "%s%s",
             detail[0] != '\0' ? detail : "the node daemon gave no reason",
             older ? "; the node daemon is older than the plugin: upgrade it" : "");
  }
  if (ok && text != NULL) ok = file < 0 || read_text(t, file, text);
  if (file >= 0) close(file);
  return ok;
}

static bool greet(struct talk* t) {
  struct tsl_message hello = tsc_message(TSL_HELLO, 1);
  hello.u.hello.min_version = TSL_VERSION;
  hello.u.hello.max_version = TSL_VERSION;
  return say(t, &hello) && hear(t, 1, NULL);
}

static bool claim_devices(struct talk* t, const char* devices, uint64_t* request) {
  size_t left = strlen(devices);
  while (left > 0) {
    const size_t piece = left < TSL_TEXT_DEVICES - 1 ? left : TSL_TEXT_DEVICES - 1;
    struct tsl_message claim = tsc_message(TSL_CLAIM, ++*request);
    memcpy(claim.u.claim.devices, devices, piece);
    if (!say(t, &claim)) return false;
    devices += piece;
    left -= piece;
  }
  return true;
}

static bool talk(struct talk* t, const char* claim, const struct tsl_message* asked,
                 struct tsp_text* text) {
  uint64_t request = 1;
  if (!open_line(t) || !greet(t)) return false;
  if (claim != NULL && !claim_devices(t, claim, &request)) return false;
  struct tsl_message message = *asked;
  message.header.request = ++request;
  return say(t, &message) && hear(t, request, text);
}

void tsp_exchange(const char* socket, int timeout_ms, const char* claim,
                  const struct tsl_message* request, struct tsp_text* text,
                  struct tsp_answer* out) {
  memset(out, 0, sizeof *out);
  if (text != NULL) text->bytes[0] = '\0';
  struct talk t = {.fd = -1,
                   .deadline = tsc_after(tsc_now(), timeout_ms),
                   .timeout_ms = timeout_ms,
                   .socket = socket,
                   .out = out};
  out->ok = talk(&t, claim, request, text);
  if (t.fd >= 0) close(t.fd);
}
