/* How calls wait: one thread reads the socket for all; the others sleep until they are answered, or
 * until the reader leaves and one of them takes its place. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "client/client.h"

void tsc_link(struct tsc_waiter** list, struct tsc_waiter* waiter) {
  while (*list != NULL) list = &(*list)->next;
  waiter->next = NULL;
  *list = waiter;
}

void tsc_unlink(struct tsc_waiter** list, struct tsc_waiter* waiter) {
  for (; *list != NULL; list = &(*list)->next) {
    if (*list != waiter) continue;
    *list = waiter->next;
    return;
  }
}

void tsc_finish(ts_client* c, struct tsc_waiter* waiter, const struct tsc_outcome* outcome) {
  waiter->outcome = *outcome;
  waiter->done = true;
  if (waiter == &c->started || waiter == &c->ending) tsc_alarm_ring(c);
  pthread_cond_broadcast(&c->changed);
}

void tsc_wake_drain(ts_client* c) {
  uint64_t count;
  while (read(c->wake, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

void tsc_nudge(ts_client* c) {
  const int saved = errno;
  const uint64_t one = 1;
  while (write(c->wake, &one, sizeof one) < 0 && errno == EINTR) {
  }
  errno = saved;
}

static void wait_for_events(ts_client* c) {
  const int64_t until = tsc_min(tsc_next_deadline(c), tsc_session_wake(c));
  const bool connected = c->phase != TSC_DOWN;
  struct pollfd fds[2] = {{.fd = c->wake, .events = POLLIN},
                          {.fd = connected ? c->fd : -1, .events = POLLIN}};
  const int64_t left = until - tsc_now();
  const struct timespec timeout = tsc_timespec(left > 0 ? left : 0);
  c->reading = true;
  pthread_mutex_unlock(&c->lock);
  const int ready = ppoll(fds, 2, until == TSC_NEVER ? NULL : &timeout, NULL);
  pthread_mutex_lock(&c->lock);
  c->reading = false;
  if (ready > 0 && fds[0].revents != 0) tsc_wake_drain(c);
  if (ready > 0 && fds[1].revents != 0) tsc_session_read(c);
}

void tsc_wait(ts_client* c, struct tsc_waiter* waiter) {
  if (waiter->done) return;
  tsc_session_advance(c);
  while (!waiter->done) {
    if (c->reading) {
      tsc_nudge(c);
      pthread_cond_wait(&c->changed, &c->lock);
    } else {
      wait_for_events(c);
      tsc_session_advance(c);
    }
  }
  pthread_cond_broadcast(&c->changed); /* another waiter reads from here on */
}

void tsc_poll(ts_client* c) {
  tsc_session_advance(c);
  if (c->reading) return;
  tsc_session_read(c);
  tsc_session_advance(c);
}
