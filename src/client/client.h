/* One participant: its connection, its slice, and who waits for what. Everything is guarded by
 * `lock`, except what ts_cancel() touches: it may run in a signal handler. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/clock.h"
#include "client/failure.h"
#include "client/guard.h"
#include "client/settings.h"
#include "local/protocol.h"

enum {
  TSC_GRACE_MS = 1000, /* for an answer that the node owes by now; then the connection is dropped */
  TSC_PATIENCE_MS = 10000, /* for a yield to reach the node */
  TSC_ABSENCE_MS = 300000, /* a daemon may be away this long if the caller has no deadline */
};

/* DOWN, or how far the connection is: each step is answered before the next is sent. */
enum tsc_phase { TSC_DOWN, TSC_GREETING, TSC_JOINING, TSC_UP };

/* A call that waits. It lives on its caller's stack, except that of ts_acquire_start(). */
struct tsc_waiter {
  struct tsc_waiter* next;
  int64_t deadline;
  bool try_only;
  bool done;
  struct tsc_outcome outcome;
};

/* What is asked of the node and not yet answered; 0: nothing on this connection. */
struct tsc_requests {
  uint64_t hello, join, acquire, yield, leave;
};

/* The acquire that all waiting threads share. */
struct tsc_acquire {
  struct tsc_waiter* waiters; /* empty: nobody wants the turn */
  uint64_t first;             /* the number of its first request; a cancel of it or later counts */
  int64_t sent_deadline;      /* what the node was told, as a time */
  int64_t give_up;            /* when a cancel that the node does not answer is over */
  char phase[TSL_TEXT_PHASE];
};

struct tsc_slice {
  bool entered;
  bool is_void; /* it ended while the daemon was away: the caller must still hear of it */
  uint32_t depth;
  struct tsl_reply
      grant; /* while void, the epoch is that of the slice the node has us in, 0: none */
};

/* A yield that the node has not recorded yet. */
struct tsc_yield {
  bool owed;
  bool repeated;
  struct tsl_yield fence;
  struct tsc_waiter* waiters;
};

struct ts_client {
  struct tsc_settings settings;
  struct tsc_guard guard;

  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool reading; /* a thread waits on the socket for all */

  enum tsc_phase phase;
  bool joined; /* once; from then on a lost connection is mended */
  int64_t retry_at, backoff, down_since;
  struct tsc_outcome trouble; /* why there is no connection */
  struct tsc_requests asked;
  struct tsc_waiter* join_waiter;
  struct tsc_waiter* leave_waiter;

  struct tsc_acquire acquire;
  struct tsc_slice slice;
  struct tsc_yield yield;
  struct tsc_waiter started; /* of ts_acquire_start() */
  struct tsc_waiter ending;  /* of ts_yield_start() */
  bool is_started, is_ending;
  uint32_t waiters; /* other jobs, as last told */

  int alarm; /* epoll behind ts_fd(), -1 until asked for */
  int timer; /* makes it readable when the socket does not show that there is something to do */
  int64_t timer_at; /* what the timer is set to */
  bool news;

  /* For ts_cancel(). `fd` keeps its number from join to leave, whatever connection it stands for.
   */
  int fd;
  int wake;
  _Atomic uint64_t next_request;
  _Atomic uint64_t waiting;   /* the request that a cancel would end, 0: none */
  _Atomic uint64_t cancelled; /* the highest request that was cancelled */
  _Atomic int ask_yield;
};

/* The connection (session.c). */
void tsc_session_advance(ts_client* c); /* ends what is overdue, connects when it is time, sends */
void tsc_session_read(ts_client* c);    /* takes in what has come; never blocks */
void tsc_session_drop(ts_client* c, ts_status status, const char* why);
int64_t tsc_session_wake(const ts_client* c); /* when to connect again */
uint64_t tsc_next_request(ts_client* c);
void tsc_send_or_drop(ts_client* c, const struct tsl_message* message);

/* Answers from the node (dispatch.c). */
void tsc_dispatch(ts_client* c, struct tsl_message* message);
void tsc_fail_waiting(ts_client* c, const struct tsc_outcome* outcome);

/* Deadlines (overdue.c). */
void tsc_end_overdue(ts_client* c, int64_t now);
int64_t tsc_next_deadline(const ts_client* c);

/* Slices (turn.c). */
void tsc_begin_acquire(ts_client* c, struct tsc_waiter* waiter, const char* phase);
void tsc_send_acquire(ts_client* c);
void tsc_acquire_answered(ts_client* c, const struct tsl_reply* reply);
void tsc_end_acquire(ts_client* c, const struct tsc_outcome* outcome);
bool tsc_acquire_cancelled(const ts_client* c);
void tsc_repeat_cancel(ts_client* c);
void tsc_owe_yield(ts_client* c, const struct tsl_reply* grant);
void tsc_send_yield(ts_client* c);
void tsc_void_slice(ts_client* c, const struct tsl_reply* rejoined);
void tsc_yield_answered(ts_client* c, const struct tsl_reply* reply);

/* Waiting (wait.c); with the lock held. */
void tsc_wait(ts_client* c, struct tsc_waiter* waiter);
void tsc_poll(ts_client* c); /* what can be done without waiting */
void tsc_finish(ts_client* c, struct tsc_waiter* waiter, const struct tsc_outcome* outcome);
void tsc_link(struct tsc_waiter** list, struct tsc_waiter* waiter);
void tsc_unlink(struct tsc_waiter** list, struct tsc_waiter* waiter);
/* Makes the reading thread look at deadlines and cancels anew. Async-signal-safe. */
void tsc_nudge(ts_client* c);
void tsc_wake_drain(ts_client* c);

/* The pollable descriptor (alarm.c). */
int tsc_alarm_fd(ts_client* c);
void tsc_alarm_watch(ts_client* c, bool on); /* the socket: on when connected */
void tsc_alarm_set(ts_client* c);            /* readable when the next thing is due */
void tsc_alarm_ring(ts_client* c);           /* readable now: there is news */
void tsc_alarm_heard(ts_client* c);
void tsc_alarm_close(ts_client* c);
