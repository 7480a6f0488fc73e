/* libtimeslice: take turns on GPUs. The C ABI; the only installed header besides timeslice.hpp.
 *
 *   ts_client* c;
 *   if (ts_join(NULL, &c) != TS_OK) ...           // everything from TIMESLICE_* in the environment
 *   ts_acquire(c, NULL, NULL);                    // blocks until the turn has come
 *   ... touch the GPU ...
 *   ts_yield(c);                                  // never touch the GPU after this
 *   ts_leave(c);
 *
 * Units: milliseconds for deadlines, microseconds for durations, bytes for sizes.
 * Threads: every function may be called from any thread, on one handle at the same time too, except
 * that nothing may use a handle during or after ts_leave() on it. No thread is started, no signal
 * disposition changed, no exception crosses.
 * Fork: in a child every call on a handle of its parent answers TS_ERR_FORKED; join anew there.
 * End: call ts_leave() before the process ends. One that ends without it has died, whatever its
 * exit code: a gang is then broken, and its other participants are ended if others wait.
 * Outside: with no TIMESLICE_SOCKET, no TIMESLICE_GROUP and no options, ts_join() answers TS_OK and
 * a handle whose calls succeed at once and do nothing, so that code runs unchanged without
 * timeslice; with TIMESLICE_REQUIRED=1 in the environment it answers TS_ERR_UNAVAILABLE instead. */
#ifndef TIMESLICE_TIMESLICE_H
#define TIMESLICE_TIMESLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TS_CHECKED __attribute__((warn_unused_result, visibility("default")))
#define TS_EXPORT __attribute__((visibility("default")))
#else
#define TS_CHECKED
#define TS_EXPORT
#endif

#define TS_VERSION_MAJOR 0
#define TS_VERSION_MINOR 1
#define TS_VERSION_PATCH 0

typedef struct ts_client ts_client; /* opaque; made by ts_join(), ended by ts_leave() */

typedef enum ts_status {
  TS_OK = 0,
  TS_ERR_INVALID = 1,     /* the caller's mistake: an argument is out of its range */
  TS_ERR_UNAVAILABLE = 2, /* no node daemon at the socket; ts_last_error() says where it looked */
  TS_ERR_FORKED = 3,      /* the handle belongs to the parent process: join anew */
  TS_ERR_INTERNAL = 4,    /* ours; please report ts_last_error() */
  TS_ERR_TIMED_OUT = 5,   /* the deadline is over; the acquire has no place in the queue any more */
  TS_ERR_CANCELLED = 6,   /* by ts_cancel() */
  TS_ERR_BUSY = 7,        /* ts_try_acquire(): the turn is not free now */
  TS_ERR_NOT_JOINED = 8,
  TS_ERR_ALREADY_JOINED = 9, /* this process is a participant already */
  TS_ERR_NOT_ENTERED = 10,   /* a yield without a slice; nothing changed */
  TS_ERR_UNKNOWN_GROUP = 11,
  TS_ERR_PERMISSION = 12,
  TS_ERR_DEVICE_OWNED = 13, /* a device of the claim belongs to another group */
  TS_ERR_NO_CLAIM = 14,     /* the job has no device to take turns on */
  TS_ERR_DEADLOCK = 15,     /* waiting would close a cycle between jobs */
  TS_ERR_NO_DEVICE_MEMORY = 16,
  TS_ERR_NO_HOST_MEMORY = 17,
  TS_ERR_NOT_RELEASED = 18,
  TS_ERR_FAULTED = 19, /* the job's state cannot be moved; see tsctl why */
  TS_ERR_EVICTED = 20,
  TS_ERR_PAUSED = 21,
  TS_ERR_STALE = 22,
  TS_ERR_VERSION = 23,         /* library and node daemon have no protocol version in common */
  TS_ERR_NO_SUCH_PROCESS = 24, /* not a process, or the id of a thread */
  TS_ERR_NO_CONTEXT = 25,      /* the process has no device state */
  TS_ERR_UNSUPPORTED = 26,
  TS_ERR_PROTOCOL = 27,
  TS_ERR_SHUTDOWN = 28,   /* the node daemon is stopping */
  TS_ERR_MASTER_DOWN = 29 /* the node daemon is fine and cannot reach the master */
} ts_status;

/* Every field may be 0 or NULL: then the environment decides, then the default. */
typedef struct ts_join_options {
  size_t size;         /* sizeof(ts_join_options): lets the struct grow */
  const char* socket;  /* TIMESLICE_SOCKET, else /run/timeslice/node.sock */
  const char* group;   /* TIMESLICE_GROUP; at most 63 bytes of [A-Za-z0-9._-] */
  const char* job;     /* TIMESLICE_JOB, else named by the node; at most 63 bytes */
  const char* devices; /* TIMESLICE_DEVICES, else CUDA_VISIBLE_DEVICES, else all; "0,1" or UUIDs */
  const char* backend; /* TIMESLICE_BACKEND, else the node's default */
  uint32_t gang;    /* TIMESLICE_GANG; participants that make one slice, 0: no gang; to 1,000,000 */
  int32_t priority; /* TIMESLICE_PRIORITY, -10,000 to 10,000; larger goes first where the policy is
                       `priority` */
  int64_t deadline_ms; /* for the join itself; 0: 10,000 */
} ts_join_options;

typedef struct ts_acquire_options {
  size_t size;         /* sizeof(ts_acquire_options) */
  int64_t deadline_ms; /* from now; 0 or less: none */
  const char* phase;   /* a label for tsctl why, at most 31 bytes; NULL: "" */
} ts_acquire_options;

typedef struct ts_grant {
  size_t size;          /* set it to sizeof(ts_grant) before the call */
  uint64_t epoch;       /* grows with every slice within one life of the master */
  uint32_t generation;  /* the master's life */
  uint32_t restored;    /* 1: device state was brought back for this slice */
  uint64_t waited_us;   /* from the request to the grant */
  uint64_t moved_bytes; /* for this grant, out and in, on all nodes */
} ts_grant;

typedef struct ts_state {
  size_t size;      /* set it to sizeof(ts_state) before the call */
  uint32_t active;  /* 0: outside, a handle that does nothing */
  uint32_t entered; /* 1: in a slice; 0 also when it has ended while the node daemon was away */
  uint32_t depth;   /* nested acquires */
  uint32_t waiters; /* other jobs waiting in the group, as last known by the node */
  uint64_t epoch;
} ts_state;

/* Makes this process a participant. `options` may be NULL. *out is NULL unless the answer is TS_OK.
 * Errors: INVALID (a value is out of its range, or does not fit the job that is there),
 * UNAVAILABLE, VERSION, UNKNOWN_GROUP, PERMISSION, DEVICE_OWNED, NO_CLAIM, ALREADY_JOINED,
 * UNSUPPORTED (the node has no such backend), MASTER_DOWN, SHUTDOWN, PROTOCOL, INTERNAL, TIMED_OUT.
 */
TS_CHECKED ts_status ts_join(const ts_join_options* options, ts_client** out);

/* Blocks until the turn has come. Inside a slice: one level deeper, at once. Both pointers may be
 * NULL. All threads that wait on a handle share one place in the queue, and one grant.
 * Errors: INVALID, TIMED_OUT, CANCELLED, DEADLOCK, EVICTED, PAUSED, FAULTED, NO_DEVICE_MEMORY,
 * NO_HOST_MEMORY, NOT_RELEASED, NOT_JOINED, FORKED, MASTER_DOWN, PROTOCOL, INTERNAL, UNAVAILABLE
 * (the daemon went away and did not return within the deadline; within 5 minutes, if there is
 * none). While it is away for a shorter time, the library comes back by itself, and may answer what
 * a join answers. */
TS_CHECKED ts_status ts_acquire(ts_client* client, const ts_acquire_options* options,
                                ts_grant* grant);
/* As ts_acquire(), and TS_ERR_BUSY instead of waiting for anybody, another thread of this process
 * that waits included. A node daemon that is silent costs up to 2 s (TIMED_OUT), one that is away 1
 * s (UNAVAILABLE). */
TS_CHECKED ts_status ts_try_acquire(ts_client* client, ts_grant* grant);

/* For loops and asyncio: asks for the turn and returns at once with TS_OK; then ts_fd() becomes
 * readable when ts_acquire_finish() may have something to say, which answers TS_ERR_BUSY until
 * then. One at a time on a handle: a second start answers TS_ERR_BUSY until the first is finished.
 */
TS_CHECKED ts_status ts_acquire_start(ts_client* client, const ts_acquire_options* options);
TS_CHECKED ts_status ts_acquire_finish(ts_client* client, ts_grant* grant);

/* Gives up the waiting acquire, from any thread or a signal handler: the calls of all threads that
 * wait on this handle end, with CANCELLED. If the grant came first they still answer TS_OK, and
 * each must be yielded. TS_OK also when nothing waits. Errors: INVALID, FORKED; it sets no
 * ts_last_error(). */
TS_CHECKED ts_status ts_cancel(ts_client* client);

/* Ends the slice of this participant, or one level of nesting. Returns when the node has recorded
 * it, also while the master is away. Whatever it answers, the slice is over. Errors: NOT_ENTERED
 * (without a slice; nothing changed), STALE (the slice had ended before, by an operator or while
 * the node daemon was away: others may have had the devices meanwhile), UNAVAILABLE (the node
 * daemon cannot be reached for 10 s: the yield is repeated at the next call), FORKED, PROTOCOL,
 * INTERNAL. */
TS_CHECKED ts_status ts_yield(ts_client* client);

/* For loops and asyncio, as ts_acquire_start() and ts_acquire_finish(). The slice is over for the
 * caller when ts_yield_start() returns TS_OK. */
TS_CHECKED ts_status ts_yield_start(ts_client* client);
TS_CHECKED ts_status ts_yield_finish(ts_client* client);

/* 1 when others wait and the hold limit is over, or when the slice has ended while the node daemon
 * was away; else 0, also on NULL. Costs two reads of the clock and one recv() that does not block,
 * a microsecond or two: call it once a step of training, not in an inner loop. */
TS_EXPORT int ts_should_yield(ts_client* client);

/* A descriptor to poll for reading: readable when a grant, a refusal or a request to yield has
 * come, or when the connection wants care; call ts_acquire_finish(), ts_yield_finish() or
 * ts_should_yield() then. Owned by the handle and the same for its whole life. -1 outside, and when
 * no descriptor is left, which ts_last_error() says. */
TS_EXPORT int ts_fd(ts_client* client);

TS_CHECKED ts_status ts_get_state(ts_client* client, ts_state* state);

/* Yields if need be, gives up what waits, frees the handle. NULL is fine. Waits for the node daemon
 * for 1 s at most, 10 s if it has to be told of a yield; a yield that it could not be told by then
 * is lost, and the slice ends with the process. In a child after fork() it frees the copy. */
TS_EXPORT void ts_leave(ts_client* client);

TS_EXPORT const char* ts_strerror(ts_status status); /* a fixed name: "TIMED_OUT" */
/* This thread's last failure, a sentence; "" before the first. Valid until the next failure of a
 * call of this thread; calls that succeed, and answers of TS_ERR_BUSY by a finish, leave it alone.
 */
TS_EXPORT const char* ts_last_error(void);
TS_EXPORT const char* ts_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif

#endif
