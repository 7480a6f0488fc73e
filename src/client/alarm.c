/* The descriptor behind ts_fd(): an epoll over the socket, the wake-up of ts_cancel() and a timer,
 * so that it keeps its number while connections come and go. */
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/client.h"

static bool add(int alarm, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  return epoll_ctl(alarm, EPOLL_CTL_ADD, fd, &event) == 0;
}

int tsc_alarm_fd(ts_client* c) {
  if (c->alarm >= 0) return c->alarm;
  c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  c->alarm = epoll_create1(EPOLL_CLOEXEC);
  c->timer_at = TSC_NEVER;
  if (c->timer < 0 || c->alarm < 0 || !add(c->alarm, c->timer) || !add(c->alarm, c->wake) ||
      (c->phase != TSC_DOWN && !add(c->alarm, c->fd))) {
    tsc_alarm_close(c);
    return -1;
  }
  tsc_alarm_set(c);
  return c->alarm;
}

void tsc_alarm_watch(ts_client* c, bool on) {
  if (c->alarm < 0) return;
  if (on) {
    add(c->alarm, c->fd);
  } else {
    epoll_ctl(c->alarm, EPOLL_CTL_DEL, c->fd, NULL);
  }
}

void tsc_alarm_set(ts_client* c) {
  if (c->alarm < 0) return;
  const int64_t at = c->news ? 1 : tsc_min(tsc_next_deadline(c), tsc_session_wake(c));
  if (at == c->timer_at) return;
  c->timer_at = at;
  const struct itimerspec when = {.it_value = tsc_timespec(at == TSC_NEVER ? 0 : at)};
  timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void tsc_alarm_ring(ts_client* c) {
  c->news = true;
  tsc_alarm_set(c);
}

void tsc_alarm_heard(ts_client* c) {
  c->news = (c->is_started && c->started.done) || (c->is_ending && c->ending.done);
  tsc_alarm_set(c);
}

void tsc_alarm_close(ts_client* c) {
  if (c->alarm >= 0) close(c->alarm);
  if (c->timer >= 0) close(c->timer);
  c->alarm = -1;
  c->timer = -1;
}
