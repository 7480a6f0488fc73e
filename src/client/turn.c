/* The slice: asking for it, holding it, giving it back. */
#include "client/client.h"

#include <string.h>

#include "client/explain.h"
#include "client/link.h"

bool tsc_acquire_cancelled(const ts_client* c) {
  return atomic_load(&c->cancelled) >= c->acquire.first;
}

/* Tries that come together share one answer, which comes at once. */
static bool others_wait(const ts_client* c) {
  for (const struct tsc_waiter* w = c->acquire.waiters; w != NULL; w = w->next) {
    if (!w->try_only) return true;
  }
  return false;
}

void tsc_begin_acquire(ts_client* c, struct tsc_waiter* waiter, const char* phase) {
  if (c->slice.entered && !c->slice.is_void) {
    c->slice.depth++;
    tsc_finish(c, waiter, &(struct tsc_outcome){.status = TS_OK});
    return;
  }
  if (waiter->try_only && others_wait(c)) {
    struct tsc_outcome busy;
    tsc_say(&busy, TS_ERR_BUSY, "acquire in group '%s': BUSY: another thread of this process waits",
            c->settings.join.group);
    tsc_finish(c, waiter, &busy);
    return;
  }
  const bool first = c->acquire.waiters == NULL;
  tsc_link(&c->acquire.waiters, waiter);
  if (!first) return;
  memset(c->acquire.phase, 0, sizeof c->acquire.phase);
  if (phase != NULL) strncpy(c->acquire.phase, phase, sizeof c->acquire.phase - 1);
  c->acquire.give_up = TSC_NEVER;
  c->acquire.first = tsc_next_request(c);
  atomic_store(&c->waiting, c->acquire.first);
}

/* Gives up nobody's place: the latest deadline among the waiters; 0 asks for an answer at once. */
static int64_t latest_deadline(const ts_client* c) {
  int64_t latest = 0;
  for (const struct tsc_waiter* w = c->acquire.waiters; w != NULL; w = w->next) {
    if (!w->try_only && w->deadline > latest) latest = w->deadline;
  }
  return latest;
}

static int64_t milliseconds_left(int64_t deadline) {
  if (deadline == 0) return 0;
  if (deadline == TSC_NEVER) return -1;
  const int64_t left = (deadline - tsc_now() + TSC_MS - 1) / TSC_MS;
  return left > 1 ? left : 1;
}

static void send_cancel(ts_client* c) {
  if (c->asked.acquire == 0) return;
  const struct tsl_message cancel = tsc_cancel_of(c->asked.acquire);
  tsc_send_or_drop(c, &cancel);
}

void tsc_send_acquire(ts_client* c) {
  const uint64_t request = tsc_next_request(c);
  struct tsl_message acquire = tsc_message(TSL_ACQUIRE, request);
  c->acquire.sent_deadline = latest_deadline(c);
  acquire.u.acquire.deadline_ms = milliseconds_left(c->acquire.sent_deadline);
  memcpy(acquire.u.acquire.phase, c->acquire.phase, sizeof acquire.u.acquire.phase);
  c->asked.acquire = request;
  atomic_store(&c->waiting, request);
  tsc_send_or_drop(c, &acquire);
  /* A cancel that came before the acquire was out met nothing at the node. */
  if (tsc_acquire_cancelled(c)) send_cancel(c);
}

/* One that read an earlier number, before this acquire was sent, met nothing either. */
void tsc_repeat_cancel(ts_client* c) {
  if (atomic_load(&c->cancelled) < c->asked.acquire) send_cancel(c);
}

void tsc_end_acquire(ts_client* c, const struct tsc_outcome* outcome) {
  struct tsc_waiter* waiter = c->acquire.waiters;
  c->acquire.waiters = NULL;
  atomic_store(&c->waiting, 0);
  while (waiter != NULL) {
    struct tsc_waiter* next = waiter->next; /* it may be gone once it is finished */
    tsc_finish(c, waiter, outcome);
    waiter = next;
  }
}

static void granted(ts_client* c, const struct tsl_reply* reply) {
  if (c->acquire.waiters == NULL) { /* all gave up in the meantime */
    tsc_owe_yield(c, reply);
    return;
  }
  if (!c->slice.is_void) c->slice.depth = 0; /* else the outer levels go on in the new slice */
  c->slice.grant = *reply;
  c->slice.entered = true;
  c->slice.is_void = false;
  for (const struct tsc_waiter* w = c->acquire.waiters; w != NULL; w = w->next) c->slice.depth++;
  atomic_store(&c->ask_yield, 0);
  tsc_end_acquire(c, &(struct tsc_outcome){.status = TS_OK});
}

/* The node gave up for those whose deadline it was told; whoever waits longer is asked for anew. */
static void end_those_told(ts_client* c, const struct tsc_outcome* outcome) {
  struct tsc_waiter* next;
  for (struct tsc_waiter* w = c->acquire.waiters; w != NULL; w = next) {
    next = w->next;
    if (!w->try_only && w->deadline > c->acquire.sent_deadline) continue;
    tsc_unlink(&c->acquire.waiters, w);
    tsc_finish(c, w, outcome);
  }
  if (c->acquire.waiters == NULL) atomic_store(&c->waiting, 0);
}

void tsc_acquire_answered(ts_client* c, const struct tsl_reply* reply) {
  c->asked.acquire = 0;
  c->waiters = reply->waiters;
  if (reply->status == TSL_OK) {
    granted(c, reply);
    return;
  }
  if (reply->status == TSL_SHUTDOWN) { /* the next daemon is asked */
    tsc_session_drop(c, TS_ERR_SHUTDOWN, "the node daemon stopped");
    return;
  }
  struct tsc_outcome outcome;
  tsc_explain(c, "acquire", reply, &outcome);
  if (reply->status == TSL_TIMED_OUT || reply->status == TSL_BUSY) {
    end_those_told(c, &outcome);
  } else {
    tsc_end_acquire(c, &outcome);
  }
}

void tsc_void_slice(ts_client* c, const struct tsl_reply* rejoined) {
  c->slice.is_void = true;
  c->slice.grant.epoch_counter = rejoined->epoch_counter;
  c->slice.grant.epoch_generation = rejoined->epoch_generation;
  atomic_store(&c->ask_yield, 1);
  tsc_alarm_ring(c);
}

void tsc_owe_yield(ts_client* c, const struct tsl_reply* grant) {
  c->slice.entered = false;
  c->slice.is_void = false;
  c->slice.depth = 0;
  atomic_store(&c->ask_yield, 0);
  c->yield.owed = true;
  c->yield.repeated = false;
  c->yield.fence = (struct tsl_yield){.epoch_counter = grant->epoch_counter,
                                      .epoch_generation = grant->epoch_generation};
}

void tsc_send_yield(ts_client* c) {
  c->asked.yield = tsc_next_request(c);
  struct tsl_message yield = tsc_message(TSL_YIELD, c->asked.yield);
  yield.u.yield = c->yield.fence;
  tsc_send_or_drop(c, &yield);
}

static void end_yield(ts_client* c, const struct tsc_outcome* outcome) {
  c->yield.owed = false;
  while (c->yield.waiters != NULL) {
    struct tsc_waiter* waiter = c->yield.waiters;
    c->yield.waiters = waiter->next;
    tsc_finish(c, waiter, outcome);
  }
}

void tsc_yield_answered(ts_client* c, const struct tsl_reply* reply) {
  c->asked.yield = 0;
  c->waiters = reply->waiters;
  if (reply->status == TSL_SHUTDOWN) {
    tsc_session_drop(c, TS_ERR_SHUTDOWN, "the node daemon stopped");
    return;
  }
  /* A repeated yield whose first copy arrived finds no slice, or a later one. */
  const bool known = reply->status == TSL_NOT_ENTERED || reply->status == TSL_STALE;
  struct tsc_outcome outcome = {.status = TS_OK};
  if (reply->status != TSL_OK && !(known && c->yield.repeated)) {
    struct tsl_reply told = *reply;
    if (told.status == TSL_NOT_ENTERED) told.status = TSL_STALE; /* to the caller it was a slice */
    tsc_explain(c, "yield", &told, &outcome);
  }
  end_yield(c, &outcome);
}
