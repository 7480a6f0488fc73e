/* Ends every call whose time is over, and says when the next one's is. */
#include "client/client.h"

/* Whether the node answers by the waiter's deadline: it was told that one or an earlier one, and
 * not that of a more patient waiter alone. */
static bool is_told(const ts_client* c, const struct tsc_waiter* waiter) {
  if (c->asked.acquire == 0) return false;
  if (waiter->try_only) return c->acquire.sent_deadline == 0;
  return waiter->deadline >= c->acquire.sent_deadline;
}

static int64_t limit_of(const ts_client* c, const struct tsc_waiter* waiter) {
  if (waiter->deadline != TSC_NEVER) {
    return is_told(c, waiter) ? tsc_after(waiter->deadline, TSC_GRACE_MS) : waiter->deadline;
  }
  return c->phase == TSC_UP ? TSC_NEVER : tsc_after(c->down_since, TSC_ABSENCE_MS);
}

static void say_absent(const ts_client* c, const char* call, struct tsc_outcome* out) {
  if (c->phase == TSC_DOWN) {
    tsc_say(out, TS_ERR_UNAVAILABLE,
            "%s in group '%s': the node daemon went away and did not return "
            "in time: %.300s",
            call, c->settings.join.group, c->trouble.text);
    return;
  }
  tsc_say(
      out, TS_ERR_UNAVAILABLE,
      "%s in group '%s': the node daemon at %s does not answer: it hangs, or the master that it "
      "waits for does; see its log and tsctl nodes",
      call, c->settings.join.group, c->settings.socket);
}

static void end_cancelled(ts_client* c) {
  struct tsc_outcome outcome;
  tsc_say(&outcome, TS_ERR_CANCELLED, "acquire in group '%s': cancelled by ts_cancel()",
          c->settings.join.group);
  tsc_end_acquire(c, &outcome);
}

/* The answer to a cancel is the acquire's; a node that owes it for too long loses the connection.
 */
static void watch_cancel(ts_client* c, int64_t now) {
  if (c->acquire.waiters == NULL || !tsc_acquire_cancelled(c)) return;
  if (c->asked.acquire == 0) {
    end_cancelled(c);
    return;
  }
  if (c->acquire.give_up == TSC_NEVER) {
    c->acquire.give_up = tsc_after(now, TSC_GRACE_MS);
    tsc_repeat_cancel(c);
    if (c->asked.acquire == 0) return; /* it could not be sent: the next look ends it */
  }
  if (now < c->acquire.give_up) return;
  tsc_session_drop(c, TS_ERR_UNAVAILABLE, "a cancel was not answered");
  end_cancelled(c);
}

static void say_late(const ts_client* c, const struct tsc_waiter* waiter, struct tsc_outcome* out) {
  say_absent(c, "acquire", out);
  if (c->asked.acquire == 0) return;
  out->status = TS_ERR_TIMED_OUT;
  if (is_told(c, waiter)) return;
  tsc_say(out, TS_ERR_TIMED_OUT,
          "acquire in group '%s': TIMED_OUT: the turn did not come by this thread's deadline; "
          "another thread of the process waits on; tsctl jobs --group %s shows who holds",
          c->settings.join.group, c->settings.join.group);
}

static void end_late_acquires(ts_client* c, int64_t now) {
  bool silent = false;
  struct tsc_waiter* next;
  for (struct tsc_waiter* waiter = c->acquire.waiters; waiter != NULL; waiter = next) {
    next = waiter->next;
    if (now < limit_of(c, waiter)) continue;
    struct tsc_outcome outcome;
    say_late(c, waiter, &outcome);
    silent = silent || is_told(c, waiter);
    tsc_unlink(&c->acquire.waiters, waiter);
    tsc_finish(c, waiter, &outcome);
  }
  if (c->acquire.waiters == NULL) atomic_store(&c->waiting, 0);
  if (silent) tsc_session_drop(c, TS_ERR_UNAVAILABLE, "an acquire was not answered");
}

static void end_late_yields(ts_client* c, int64_t now) {
  while (c->yield.waiters != NULL && now >= c->yield.waiters->deadline) {
    struct tsc_waiter* waiter = c->yield.waiters;
    struct tsc_outcome outcome;
    say_absent(c, "yield (kept, and repeated at the next call)", &outcome);
    tsc_unlink(&c->yield.waiters, waiter);
    tsc_finish(c, waiter, &outcome);
  }
}

/* What ended the tries before says more than a try that has only just begun. */
static bool is_silent(const ts_client* c, int64_t now) {
  return c->trouble.status == TS_OK || (c->phase != TSC_DOWN && now >= c->retry_at);
}

static void end_late(ts_client* c, struct tsc_waiter** slot, const char* call, int64_t now) {
  struct tsc_waiter* waiter = *slot;
  if (waiter == NULL || now < waiter->deadline) return;
  struct tsc_outcome outcome = c->trouble;
  if (is_silent(c, now)) {
    say_absent(c, call, &outcome);
    outcome.status = TS_ERR_TIMED_OUT;
  }
  *slot = NULL;
  tsc_finish(c, waiter, &outcome);
}

void tsc_end_overdue(ts_client* c, int64_t now) {
  watch_cancel(c, now);
  end_late_acquires(c, now);
  end_late_yields(c, now);
  end_late(c, &c->join_waiter, "join", now);
  end_late(c, &c->leave_waiter, "leave", now);
}

int64_t tsc_next_deadline(const ts_client* c) {
  int64_t next = TSC_NEVER;
  for (const struct tsc_waiter* w = c->acquire.waiters; w != NULL; w = w->next) {
    next = tsc_min(next, limit_of(c, w));
  }
  if (c->acquire.waiters != NULL) next = tsc_min(next, c->acquire.give_up);
  for (const struct tsc_waiter* w = c->yield.waiters; w != NULL; w = w->next) {
    next = tsc_min(next, w->deadline);
  }
  if (c->join_waiter != NULL) next = tsc_min(next, c->join_waiter->deadline);
  if (c->leave_waiter != NULL) next = tsc_min(next, c->leave_waiter->deadline);
  return next;
}
