/* What the node says, and what follows from it. */
#include <stdio.h>

#include "client/client.h"
#include "client/explain.h"
#include "client/link.h"

static void finish_slot(ts_client* c, struct tsc_waiter** slot, const struct tsc_outcome* outcome) {
  struct tsc_waiter* waiter = *slot;
  if (waiter == NULL) return;
  *slot = NULL;
  tsc_finish(c, waiter, outcome);
}

void tsc_fail_waiting(ts_client* c, const struct tsc_outcome* outcome) {
  finish_slot(c, &c->join_waiter, outcome);
  finish_slot(c, &c->leave_waiter, outcome);
  tsc_end_acquire(c, outcome);
  while (c->yield.waiters != NULL) {
    struct tsc_waiter* waiter = c->yield.waiters;
    c->yield.waiters = waiter->next;
    tsc_finish(c, waiter, outcome);
  }
}

/* Answers that time may change when a participant comes back: a daemon that has not noticed the old
 * connection's end, or has not found its master yet. */
static bool passes(int32_t status) {
  return status == TSL_ALREADY_JOINED || status == TSL_MASTER_DOWN || status == TSL_UNAVAILABLE ||
         status == TSL_SHUTDOWN || status == TSL_BUSY;
}

static void turned_away(ts_client* c, const struct tsl_reply* reply) {
  struct tsc_outcome outcome;
  tsc_explain(c, "join", reply, &outcome);
  tsc_session_drop(c, outcome.status, "turned away");
  c->trouble = outcome;
  if (!c->joined || !passes(reply->status)) tsc_fail_waiting(c, &outcome);
}

static void wrong_version(ts_client* c, unsigned chosen) {
  struct tsl_reply reply = {.status = TSL_VERSION_MISMATCH};
  snprintf(reply.detail, sizeof reply.detail,
           "the node daemon chose version %u of the local protocol, this library speaks %u only",
           chosen, TSL_VERSION);
  turned_away(c, &reply);
}

static void greeted(ts_client* c, const struct tsl_message* message) {
  const unsigned version = message->header.version;
  c->asked.hello = 0;
  if (message->u.reply.status != TSL_OK) {
    turned_away(c, &message->u.reply);
  } else if (version != TSL_VERSION) {
    wrong_version(c, version);
  }
}

/* The slice that this process was started in: its first acquire has it already, and a yield without
 * one ends it. */
static void enter_from_gate(ts_client* c, const struct tsl_reply* reply) {
  c->slice = (struct tsc_slice){.entered = true, .grant = *reply};
}

/* The node remembers a slice that we gave up. Whoever waits asks for it again instead. */
static void give_back_what_is_left(ts_client* c, const struct tsl_reply* reply) {
  const bool wanted = c->slice.entered || c->yield.owed || c->acquire.waiters != NULL;
  if (reply->epoch_counter != 0 && !wanted) tsc_owe_yield(c, reply);
}

/* A slice may end while the daemon is away: by an operator, or since its node was given up. */
static void compare_slices(ts_client* c, const struct tsl_reply* reply) {
  const struct tsl_reply* grant = &c->slice.grant;
  const bool same = reply->epoch_counter == grant->epoch_counter &&
                    reply->epoch_generation == grant->epoch_generation;
  if (c->slice.entered && !same) tsc_void_slice(c, reply);
}

static void joined(ts_client* c, const struct tsl_reply* reply) {
  c->asked.join = 0;
  if (reply->status != TSL_OK) {
    turned_away(c, reply);
    return;
  }
  c->phase = TSC_UP;
  c->joined = true;
  c->backoff = 0;
  c->waiters = reply->waiters;
  if ((reply->flags & TSL_REPLY_FROM_GATE) != 0 && !c->slice.entered) enter_from_gate(c, reply);
  compare_slices(c, reply);
  give_back_what_is_left(c, reply);
  finish_slot(c, &c->join_waiter, &(struct tsc_outcome){.status = TS_OK});
}

static void asked_to_yield(ts_client* c, const struct tsl_reply* ask) {
  const bool stale = ask->epoch_counter != 0 && ask->epoch_counter != c->slice.grant.epoch_counter;
  if (!c->slice.entered || stale) return; /* it crossed our yield */
  c->waiters = ask->waiters;
  atomic_store(&c->ask_yield, 1);
  tsc_alarm_ring(c);
}

static void answered(ts_client* c, const struct tsl_message* message) {
  const uint64_t request = message->header.request;
  const struct tsl_reply* reply = &message->u.reply;
  if (request == 0) return; /* no request of ours has it */
  if (request == c->asked.hello) {
    greeted(c, message);
  } else if (request == c->asked.join) {
    joined(c, reply);
  } else if (request == c->asked.acquire) {
    tsc_acquire_answered(c, reply);
  } else if (request == c->asked.yield) {
    tsc_yield_answered(c, reply);
  } else if (request == c->asked.leave) {
    finish_slot(c, &c->leave_waiter, &(struct tsc_outcome){.status = TS_OK});
  }
}

void tsc_dispatch(ts_client* c, struct tsl_message* message) {
  message->u.reply.detail[sizeof message->u.reply.detail - 1] = '\0';
  if (message->header.type == TSL_REPLY) {
    answered(c, message);
  } else if (message->header.type == TSL_ASK_YIELD) {
    asked_to_yield(c, &message->u.reply);
  } /* else: of a later version, which may say more than we asked for */
}
