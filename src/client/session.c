#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/client.h"
#include "client/explain.h"
#include "client/link.h"

enum { kFirstBackoffMs = 10, kLastBackoffMs = 500 };

uint64_t tsc_next_request(ts_client* c) {
  return atomic_fetch_add(&c->next_request, 1);
}

static bool wanted(const ts_client* c) {
  return c->join_waiter != NULL || c->leave_waiter != NULL || c->acquire.waiters != NULL ||
         c->slice.entered || c->yield.owed;
}

void tsc_session_drop(ts_client* c, ts_status status, const char* why) {
  tsc_say(&c->trouble, status, "%s (node daemon at %s); see its log", why, c->settings.socket);
  if (c->phase == TSC_DOWN) return;
  tsc_alarm_watch(c, false);
  shutdown(c->fd, SHUT_RDWR); /* the number stays taken: a cancel may be about to use it */
  const int64_t now = tsc_now();
  if (c->phase == TSC_UP) {
    c->down_since = now;
    c->backoff = 0;
  }
  c->phase = TSC_DOWN;
  c->yield.repeated = c->yield.repeated || c->asked.yield != 0;
  c->asked = (struct tsc_requests){0};
  c->retry_at = tsc_after(now, c->backoff);
}

void tsc_send_or_drop(ts_client* c, const struct tsl_message* message) {
  if (tsc_send(c->fd, message) != 0) {
    tsc_session_drop(c, TS_ERR_UNAVAILABLE, "the connection broke while sending");
  }
}

static void greet(ts_client* c) {
  c->asked.hello = tsc_next_request(c);
  struct tsl_message hello = tsc_message(TSL_HELLO, c->asked.hello);
  hello.u.hello.min_version = TSL_VERSION;
  hello.u.hello.max_version = TSL_VERSION;
  c->phase = TSC_GREETING;
  tsc_send_or_drop(c, &hello);
}

static void send_claim(ts_client* c) {
  const char* text = c->settings.devices;
  size_t left = text != NULL ? strlen(text) : 0;
  while (left > 0 && c->phase != TSC_DOWN) {
    const size_t piece = left < TSL_TEXT_DEVICES - 1 ? left : TSL_TEXT_DEVICES - 1;
    struct tsl_message claim = tsc_message(TSL_CLAIM, tsc_next_request(c));
    memcpy(claim.u.claim.devices, text, piece);
    tsc_send_or_drop(c, &claim);
    text += piece;
    left -= piece;
  }
}

/* A little less than is left: the node says why, this side could only say that it is late. */
static int64_t patience_of_node(const ts_client* c) {
  if (c->join_waiter == NULL) return 0; /* comes back: it tries again by itself */
  const int64_t left = (c->join_waiter->deadline - tsc_now()) / TSC_MS;
  return left > 0 ? left - tsc_min(left / 4, 100) : 0;
}

static void ask_to_join(ts_client* c) {
  c->phase = TSC_JOINING;
  send_claim(c);
  if (c->phase == TSC_DOWN) return;
  c->asked.join = tsc_next_request(c);
  struct tsl_message join = tsc_message(TSL_JOIN, c->asked.join);
  join.u.join = c->settings.join;
  join.u.join.deadline_ms = patience_of_node(c);
  tsc_send_or_drop(c, &join);
}

static void back_off(ts_client* c, int64_t now) {
  const int64_t doubled = c->backoff == 0 ? kFirstBackoffMs : c->backoff * 2;
  c->backoff = tsc_min(doubled, kLastBackoffMs);
  c->retry_at = tsc_after(now, c->backoff);
}

static bool may_pass(const ts_client* c, int error) {
  return c->joined || error == EAGAIN || error == EINTR;
}

/* The new connection takes over the old one's number. */
static void adopt(ts_client* c, int fd) {
  if (c->fd < 0) {
    c->fd = fd;
  } else {
    dup3(fd, c->fd, O_CLOEXEC);
    close(fd);
  }
  tsc_alarm_watch(c, true);
  greet(c);
}

static void connect_when_due(ts_client* c) {
  const int64_t now = tsc_now();
  if (c->phase != TSC_DOWN || !wanted(c) || now < c->retry_at) return;
  back_off(c, now);
  const int fd = tsc_connect(c->settings.socket);
  if (fd >= 0) {
    adopt(c, fd);
    return;
  }
  tsc_explain_connect(c, -fd, &c->trouble);
  if (!may_pass(c, -fd)) tsc_fail_waiting(c, &c->trouble);
}

/* What is asked but not yet sent, in the order that the node must see it. */
static void send_due(ts_client* c) {
  if (c->phase == TSC_GREETING && c->asked.hello == 0) ask_to_join(c);
  if (c->phase == TSC_UP && c->yield.owed && c->asked.yield == 0) tsc_send_yield(c);
  if (c->phase == TSC_UP && !c->yield.owed && c->asked.acquire == 0 && c->acquire.waiters != NULL) {
    tsc_send_acquire(c);
  }
  if (c->phase == TSC_UP && !c->yield.owed && c->asked.leave == 0 && c->leave_waiter != NULL) {
    c->asked.leave = tsc_next_request(c);
    const struct tsl_message leave = tsc_message(TSL_LEAVE, c->asked.leave);
    tsc_send_or_drop(c, &leave);
  }
}

void tsc_session_advance(ts_client* c) {
  tsc_end_overdue(c, tsc_now());
  connect_when_due(c);
  send_due(c);
  tsc_alarm_set(c);
}

void tsc_session_read(ts_client* c) {
  struct tsl_message message;
  long bytes;
  while (c->phase != TSC_DOWN) {
    switch (tsc_receive(c->fd, &message, &bytes)) {
      case TSC_MESSAGE:
        tsc_dispatch(c, &message);
        break;
      case TSC_NOTHING:
        return;
      case TSC_CLOSED:
        tsc_session_drop(c, TS_ERR_UNAVAILABLE, "the connection was closed");
        return;
      case TSC_TORN:
        tsc_session_drop(c, TS_ERR_PROTOCOL, "what came is no message of the protocol");
        tsc_fail_waiting(c, &c->trouble);
        return;
    }
  }
}

int64_t tsc_session_wake(const ts_client* c) {
  return c->phase == TSC_DOWN && wanted(c) ? c->retry_at : TSC_NEVER;
}
