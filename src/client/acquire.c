/* The exported calls that take and give back the turn. */
#include <string.h>

#include "client/handle.h"

/* Checked before anything is asked of the node: an answer that cannot be told must not be a slice.
 */
static ts_status check_grant(const ts_grant* grant) {
  return grant == NULL ? TS_OK : tsc_sized_out(grant->size, "ts_grant");
}

static void fill_grant(const ts_client* c, ts_grant* grant) {
  if (grant == NULL) return;
  const struct tsl_reply* reply = &c->slice.grant;
  const ts_grant full = {.size = grant->size,
                         .epoch = reply->epoch_counter,
                         .generation = reply->epoch_generation,
                         .restored = reply->restored,
                         .waited_us = reply->waited_us,
                         .moved_bytes = reply->bytes};
  memcpy(grant, &full, full.size < sizeof full ? full.size : sizeof full);
}

static ts_status check_options(const ts_acquire_options* options, ts_acquire_options* out) {
  const ts_status status = tsc_sized_in(options, sizeof *out, out, "ts_acquire_options");
  if (status != TS_OK) return status;
  if (out->phase != NULL && strlen(out->phase) >= TSL_TEXT_PHASE) {
    return tsc_fail(TS_ERR_INVALID, "the phase '%.40s...' has %zu bytes, at most %d fit",
                    out->phase, strlen(out->phase), TSL_TEXT_PHASE - 1);
  }
  return TS_OK;
}

static int64_t deadline_of(const ts_acquire_options* options) {
  return options->deadline_ms > 0 ? tsc_after(tsc_now(), options->deadline_ms) : TSC_NEVER;
}

static ts_status acquire(ts_client* c, struct tsc_waiter* waiter, const char* phase,
                         ts_grant* grant) {
  if (!c->settings.active) {
    fill_grant(c, grant);
    return TS_OK;
  }
  pthread_mutex_lock(&c->lock);
  tsc_begin_acquire(c, waiter, phase);
  tsc_wait(c, waiter);
  if (waiter->outcome.status == TS_OK) fill_grant(c, grant);
  pthread_mutex_unlock(&c->lock);
  return tsc_answer(&waiter->outcome);
}

ts_status ts_acquire(ts_client* c, const ts_acquire_options* options, ts_grant* grant) {
  ts_acquire_options given;
  ts_status status = tsc_check_handle(c, "ts_acquire");
  if (status == TS_OK) status = check_grant(grant);
  if (status == TS_OK) status = check_options(options, &given);
  if (status != TS_OK) return status;
  struct tsc_waiter waiter = {.deadline = deadline_of(&given)};
  return acquire(c, &waiter, given.phase, grant);
}

ts_status ts_try_acquire(ts_client* c, ts_grant* grant) {
  ts_status status = tsc_check_handle(c, "ts_try_acquire");
  if (status == TS_OK) status = check_grant(grant);
  if (status != TS_OK) return status;
  struct tsc_waiter waiter = {.deadline = tsc_after(tsc_now(), TSC_GRACE_MS), .try_only = true};
  return acquire(c, &waiter, NULL, grant);
}

static ts_status start(ts_client* c, const ts_acquire_options* given) {
  if (c->is_started) {
    return tsc_fail(TS_ERR_BUSY,
                    "ts_acquire_start: another acquire was started on this handle: "
                    "ts_acquire_finish() it first");
  }
  c->started = (struct tsc_waiter){.deadline = deadline_of(given)};
  c->is_started = true;
  tsc_begin_acquire(c, &c->started, given->phase);
  if (!c->started.done) tsc_session_advance(c);
  return TS_OK;
}

ts_status ts_acquire_start(ts_client* c, const ts_acquire_options* options) {
  ts_acquire_options given;
  ts_status status = tsc_check_handle(c, "ts_acquire_start");
  if (status == TS_OK) status = check_options(options, &given);
  if (status != TS_OK || !c->settings.active) return status;
  pthread_mutex_lock(&c->lock);
  status = start(c, &given);
  pthread_mutex_unlock(&c->lock);
  return status;
}

/* Whether a started call is done; takes in what has come. */
static bool settled(ts_client* c, const struct tsc_waiter* waiter) {
  if (!c->reading) tsc_wake_drain(c); /* else the wake-up is the reader's */
  tsc_poll(c);
  if (!waiter->done) tsc_alarm_heard(c);
  return waiter->done;
}

static ts_status finish(ts_client* c, ts_grant* grant) {
  if (!c->is_started) {
    return tsc_fail(TS_ERR_INVALID,
                    "ts_acquire_finish: nothing was started: see ts_acquire_start()");
  }
  if (!settled(c, &c->started)) return TS_ERR_BUSY;
  c->is_started = false;
  tsc_alarm_heard(c);
  if (c->started.outcome.status == TS_OK) fill_grant(c, grant);
  return tsc_answer(&c->started.outcome);
}

ts_status ts_acquire_finish(ts_client* c, ts_grant* grant) {
  ts_status status = tsc_check_handle(c, "ts_acquire_finish");
  if (status == TS_OK) status = check_grant(grant);
  if (status != TS_OK) return status;
  if (!c->settings.active) {
    fill_grant(c, grant);
    return TS_OK;
  }
  pthread_mutex_lock(&c->lock);
  status = finish(c, grant);
  pthread_mutex_unlock(&c->lock);
  return status;
}

static ts_status end_void(ts_client* c) {
  c->slice = (struct tsc_slice){.entered = false};
  atomic_store(&c->ask_yield, 0);
  return tsc_fail(
      TS_ERR_STALE,
      "yield in group '%s': STALE: the slice ended while the node daemon at %s was away; "
      "acquire anew before using the devices; tsctl events says why",
      c->settings.join.group, c->settings.socket);
}

/* TS_OK: the waiter is done, or will be when the node has recorded the yield. */
static ts_status begin_yield(ts_client* c, struct tsc_waiter* waiter) {
  if (!c->slice.entered) {
    return tsc_fail(TS_ERR_NOT_ENTERED,
                    "yield in group '%s': this handle is in no slice; nothing "
                    "changed",
                    c->settings.join.group);
  }
  if (c->slice.depth > 1) {
    c->slice.depth--;
    tsc_finish(c, waiter, &(struct tsc_outcome){.status = TS_OK});
    return TS_OK;
  }
  if (c->slice.is_void && c->slice.grant.epoch_counter == 0) return end_void(c);
  tsc_owe_yield(c, &c->slice.grant);
  waiter->deadline = tsc_after(tsc_now(), TSC_PATIENCE_MS);
  tsc_link(&c->yield.waiters, waiter);
  return TS_OK;
}

ts_status ts_yield(ts_client* c) {
  ts_status status = tsc_check_handle(c, "ts_yield");
  if (status != TS_OK || !c->settings.active) return status;
  struct tsc_waiter waiter = {.next = NULL};
  pthread_mutex_lock(&c->lock);
  status = begin_yield(c, &waiter);
  if (status == TS_OK) tsc_wait(c, &waiter);
  pthread_mutex_unlock(&c->lock);
  return status == TS_OK ? tsc_answer(&waiter.outcome) : status;
}

ts_status ts_yield_start(ts_client* c) {
  ts_status status = tsc_check_handle(c, "ts_yield_start");
  if (status != TS_OK || !c->settings.active) return status;
  pthread_mutex_lock(&c->lock);
  if (c->is_ending) {
    status = tsc_fail(TS_ERR_BUSY,
                      "ts_yield_start: another yield was started on this handle: "
                      "ts_yield_finish() it first");
  } else {
    c->ending = (struct tsc_waiter){.next = NULL};
    status = begin_yield(c, &c->ending);
    c->is_ending = status == TS_OK;
    if (c->is_ending) tsc_session_advance(c);
  }
  pthread_mutex_unlock(&c->lock);
  return status;
}

static ts_status finish_yield(ts_client* c) {
  if (!c->is_ending) {
    return tsc_fail(TS_ERR_INVALID, "ts_yield_finish: nothing was started: see ts_yield_start()");
  }
  if (!settled(c, &c->ending)) return TS_ERR_BUSY;
  c->is_ending = false;
  tsc_alarm_heard(c);
  return tsc_answer(&c->ending.outcome);
}

ts_status ts_yield_finish(ts_client* c) {
  ts_status status = tsc_check_handle(c, "ts_yield_finish");
  if (status != TS_OK || !c->settings.active) return status;
  pthread_mutex_lock(&c->lock);
  status = finish_yield(c);
  pthread_mutex_unlock(&c->lock);
  return status;
}
