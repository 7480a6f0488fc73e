/* A handle's life, and what may be asked of it besides turns. */
#include "client/handle.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/link.h"

ts_status tsc_check_handle(const ts_client* c, const char* call) {
  if (c == NULL) return tsc_fail(TS_ERR_INVALID, "%s: the handle is NULL; see ts_join()", call);
  if (!tsc_guard_forked(&c->guard)) return TS_OK;
  return tsc_fail(TS_ERR_FORKED,
                  "%s: this handle belongs to process %d, which forked %d: call "
                  "ts_join() here",
                  call, (int)c->guard.pid, (int)getpid());
}

static void make_lock(ts_client* c) {
  pthread_cond_init(&c->changed,
                    NULL); /* nobody waits on it by the clock: the reader does, for all */
  pthread_mutex_init(&c->lock, NULL);
}

static ts_client* make_handle(struct tsc_settings* settings) {
  ts_client* c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->settings = *settings;
  c->fd = c->alarm = c->timer = c->wake = -1;
  c->next_request = 1;
  c->acquire.give_up = TSC_NEVER;
  tsc_guard_open(&c->guard);
  make_lock(c);
  return c;
}

/* In a child only its copies go: the connection stays the parent's. */
static void free_handle(ts_client* c) {
  tsc_alarm_close(c);
  if (c->wake >= 0) close(c->wake);
  if (c->fd >= 0) close(c->fd);
  if (!tsc_guard_forked(&c->guard)) {
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
  tsc_guard_close(&c->guard);
  tsc_settings_free(&c->settings);
  free(c);
}

static void join(ts_client* c, struct tsc_outcome* outcome) {
  c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->wake < 0) {
    tsc_say(outcome, TS_ERR_INTERNAL, "join: no descriptor is left in this process: see ulimit -n");
    return;
  }
  pthread_mutex_lock(&c->lock);
  struct tsc_waiter waiter = {.deadline = tsc_after(tsc_now(), c->settings.deadline_ms)};
  c->join_waiter = &waiter;
  tsc_wait(c, &waiter);
  pthread_mutex_unlock(&c->lock);
  *outcome = waiter.outcome;
}

ts_status ts_join(const ts_join_options* options, ts_client** out) {
  if (out == NULL) return tsc_fail(TS_ERR_INVALID, "ts_join: `out` is NULL");
  *out = NULL;
  struct tsc_settings settings;
  const ts_status status = tsc_settings_read(options, &settings);
  return status == TS_OK ? tsc_join_as(&settings, out) : status;
}

ts_status tsc_join_as(struct tsc_settings* settings, ts_client** out) {
  *out = NULL;
  ts_client* c = make_handle(settings);
  if (c == NULL) {
    tsc_settings_free(settings);
    return tsc_fail(TS_ERR_INTERNAL, "ts_join: out of memory");
  }
  struct tsc_outcome outcome = {.status = TS_OK};
  if (settings->active) join(c, &outcome);
  if (outcome.status == TS_OK) {
    *out = c;
  } else {
    free_handle(c);
  }
  return tsc_answer(&outcome);
}

static void leave(ts_client* c) {
  pthread_mutex_lock(&c->lock);
  if (c->acquire.waiters != NULL) {
    tsc_end_acquire(c, &(struct tsc_outcome){.status = TS_ERR_CANCELLED});
  }
  if (c->slice.entered && c->slice.grant.epoch_counter != 0) tsc_owe_yield(c, &c->slice.grant);
  if (c->phase != TSC_DOWN || c->yield.owed) {
    const int64_t patience = c->yield.owed ? TSC_PATIENCE_MS : TSC_GRACE_MS;
    struct tsc_waiter waiter = {.deadline = tsc_after(tsc_now(), patience)};
    c->leave_waiter = &waiter;
    tsc_wait(c, &waiter);
  }
  pthread_mutex_unlock(&c->lock);
}

void ts_leave(ts_client* c) {
  if (c == NULL) return;
  if (c->settings.active && !tsc_guard_forked(&c->guard)) leave(c);
  free_handle(c);
}

ts_status ts_cancel(ts_client* c) {
  if (c == NULL) return TS_ERR_INVALID;
  if (tsc_guard_forked(&c->guard)) return TS_ERR_FORKED;
  const uint64_t target = atomic_load(&c->waiting);
  if (target == 0) return TS_OK;
  uint64_t highest = atomic_load(&c->cancelled);
  do {
    if (highest >= target) return TS_OK; /* cancelled already; once is enough for the node */
  } while (!atomic_compare_exchange_weak(&c->cancelled, &highest, target));
  const struct tsl_message cancel = tsc_cancel_of(target);
  if (c->fd >= 0) tsc_send(c->fd, &cancel);
  tsc_nudge(c);
  return TS_OK;
}

int ts_should_yield(ts_client* c) {
  if (c == NULL || tsc_guard_forked(&c->guard) || !c->settings.active) return 0;
  if (pthread_mutex_trylock(&c->lock) != 0) return atomic_load(&c->ask_yield);
  tsc_poll(c);
  tsc_alarm_heard(c);
  pthread_mutex_unlock(&c->lock);
  return atomic_load(&c->ask_yield);
}

int ts_fd(ts_client* c) {
  if (tsc_check_handle(c, "ts_fd") != TS_OK || !c->settings.active) return -1;
  pthread_mutex_lock(&c->lock);
  const int fd = tsc_alarm_fd(c);
  pthread_mutex_unlock(&c->lock);
  if (fd < 0) {
    tsc_fail(TS_ERR_INTERNAL, "ts_fd: no descriptor is left in this process: see ulimit -n");
  }
  return fd;
}

ts_status ts_get_state(ts_client* c, ts_state* state) {
  ts_status status = tsc_check_handle(c, "ts_get_state");
  if (status != TS_OK) return status;
  if (state == NULL) return tsc_fail(TS_ERR_INVALID, "ts_get_state: `state` is NULL");
  const size_t size = state->size;
  status = tsc_sized_out(size, "ts_state");
  if (status != TS_OK) return status;
  ts_state now = {.size = size, .active = c->settings.active};
  if (c->settings.active) {
    pthread_mutex_lock(&c->lock);
    now.entered = c->slice.entered && !c->slice.is_void;
    now.depth = c->slice.depth;
    now.waiters = c->waiters;
    now.epoch = now.entered ? c->slice.grant.epoch_counter : 0;
    pthread_mutex_unlock(&c->lock);
  }
  memcpy(state, &now, size < sizeof now ? size : sizeof now);
  return TS_OK;
}
