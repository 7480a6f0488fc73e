/* The message protocol of a node's unix socket: one struct of 256 bytes per SOCK_SEQPACKET message.
 * C can read this header; it depends on nothing. Both ends are on one machine, so integers are in
 * host order. A request is answered exactly once, by a reply with the same `request`. The kernel
 * says who speaks (SCM_CREDENTIALS on every message); no pid in a message is ever trusted as the
 * speaker's. */
#pragma once

#include <stdint.h>

#define TSL_MAGIC 0x314c5354u /* "TSL1" */
#define TSL_VERSION 1u
#define TSL_MESSAGE_BYTES 256
#define TSL_SOCKET_DEFAULT "/run/timeslice/node.sock"

enum {
  TSL_TEXT_GROUP = 64, /* names end in NUL inside these bounds */
  TSL_TEXT_JOB = 64,
  TSL_TEXT_PHASE = 32,
  TSL_TEXT_DETAIL = 176,
  TSL_TEXT_DEVICES = 176,
};

enum {
  TSL_MOST_IN_GANG = 1000000,
  TSL_MOST_PRIORITY = 10000, /* and as much below 0 */
};

#define TSL_ALL_STEPS 0xffffffffu /* as a step: of TSL_STEP_END */

enum tsl_type {
  /* Client to node. */
  TSL_HELLO = 1, /* first message of a connection, the same in every version; the reply's header has
                    the version agreed on, and so has every message after it */
  TSL_CLAIM = 2, /* zero or more before TSL_JOIN: part of a device list; the join answers for it */
  TSL_JOIN = 3,  /* the sending process becomes a participant; again after a lost connection, with
                    the same names: the reply's epoch is that of the slice it is in, 0 if none */
  TSL_ACQUIRE = 4, /* answered when the turn has come, is refused, or the deadline is over */
  TSL_CANCEL = 5,  /* gives up an acquire, whose number it has and names; not answered itself: the
                      acquire is, with TSL_CANCELLED, or TSL_OK if the grant came first. Nothing
                      waits  under that number: ignored */
  TSL_YIELD = 6,   /* fenced by its epoch: may be repeated, also after a lost connection */
  TSL_LEAVE = 7,
  TSL_STATUS = 8,
  TSL_SNAPSHOT = 9, /* quiesce and save a pid of the caller's uid, without any master */
  TSL_RESTORE = 10, /* restore and release it */
  TSL_DOCTOR = 11,  /* what works here; answered with text through a descriptor (SCM_RIGHTS) */
  /* Only from processes that root started: the Slurm plugin, which may speak as the job's user. */
  TSL_STEP_BEGIN = 12, /* by slurmstepd: a step is about to start here, on the devices of the
                          TSL_CLAIMs before it. Answered when its job may take turns on them, with
                          variables for its tasks, lines NAME=VALUE, through a descriptor */
  TSL_STEP_END = 13,   /* by slurmstepd, or for all steps of a job by Slurm's epilog: whatever is
                          left of it is ended */
  TSL_OUTLOOK = 14,    /* of a job that waits: in the detail why, in `waiters` how many jobs are
                          before it, in `bytes` how many tasks its gang lacks */
  TSL_ACCOUNT = 15,    /* in the detail what turns a step has had, of a batch script all that its
                          job has had on this node; "" if none */

  /* Node to client. */
  TSL_REPLY = 64,     /* the one answer to a request */
  TSL_ASK_YIELD = 65, /* unasked: others wait, please yield; `request` is 0 */
};

/* Status of a reply. The numbers are those of ts_status in <timeslice/timeslice.h>. */
enum tsl_status {
  TSL_OK = 0,
  TSL_INVALID = 1,
  TSL_UNAVAILABLE = 2,
  TSL_FORKED = 3,
  TSL_INTERNAL = 4,
  TSL_TIMED_OUT = 5,
  TSL_CANCELLED = 6,
  TSL_BUSY = 7,
  TSL_NOT_JOINED = 8,
  TSL_ALREADY_JOINED = 9,
  TSL_NOT_ENTERED = 10,
  TSL_UNKNOWN_GROUP = 11,
  TSL_PERMISSION = 12,
  TSL_DEVICE_OWNED = 13,
  TSL_NO_CLAIM = 14,
  TSL_DEADLOCK = 15,
  TSL_NO_DEVICE_MEMORY = 16,
  TSL_NO_HOST_MEMORY = 17,
  TSL_NOT_RELEASED = 18,
  TSL_FAULTED = 19,
  TSL_EVICTED = 20,
  TSL_PAUSED = 21,
  TSL_STALE = 22,
  TSL_VERSION_MISMATCH = 23,
  TSL_NO_SUCH_PROCESS = 24, /* not a process, or a thread's id */
  TSL_NO_CONTEXT = 25,      /* the process has no device state */
  TSL_UNSUPPORTED = 26,
  TSL_PROTOCOL = 27, /* malformed message; the connection is closed after this reply */
  TSL_SHUTDOWN = 28,
  TSL_MASTER_DOWN = 29, /* the node is fine and cannot reach the master */
};

struct tsl_header {
  uint32_t magic;
  uint16_t version;
  uint16_t type;
  uint64_t request; /* chosen by the client, not 0, grows within a connection, except a cancel's */
};

struct tsl_hello { /* the versions that count, whatever the header says; agreed on is the highest
                      that both have; none: TSL_VERSION_MISMATCH, both ranges in the detail */
  uint16_t min_version;
  uint16_t max_version;
};

struct tsl_claim {    /* pieces are joined in order, as text like CUDA_VISIBLE_DEVICES: */
  uint32_t node_only; /* reserved, 0 */
  char devices[TSL_TEXT_DEVICES]; /* "0,1", "GPU-uuid,...", "none" */
};

enum tsl_join_flags {
  TSL_JOIN_NO_DEVICES = 1, /* claim nothing: turn-taking only is refused, see TSL_NO_CLAIM */
  TSL_JOIN_AT_GATE = 2,    /* for a task that has not started, by the Slurm plugin: the first of its
                              processes that joins takes the place over, with the slice it is in */
};

struct tsl_join {
  char group[TSL_TEXT_GROUP];
  char job[TSL_TEXT_JOB]; /* "" : the node names it by uid, session and pid */
  uint32_t gang;          /* 0: no gang; at most TSL_MOST_IN_GANG */
  int32_t priority;
  uint32_t flags;
  uint32_t on_broken; /* 0 kill, 1 keep */
  char backend[16];   /* "" : the node's default; "cuda"; "none": nothing to move, though every step
                         of a switch is taken; "turns": no members at all, turns only */
  int64_t deadline_ms; /* from now: how long to wait for a master that is away; 0: not at all */
};

struct tsl_acquire {
  int64_t deadline_ms; /* from now; 0: answer at once; -1: no deadline */
  char phase[TSL_TEXT_PHASE];
};

struct tsl_cancel {
  uint64_t target; /* the `request` of the acquire */
};

struct tsl_yield {
  uint64_t epoch_counter;
  uint32_t epoch_generation;
};

struct tsl_pid { /* TSL_SNAPSHOT, TSL_RESTORE */
  int32_t pid;
  uint32_t reserved;
  int64_t deadline_ms;
};

struct tsl_step {
  uint32_t slurm_job;
  uint32_t slurm_step;
  uint32_t gang; /* these as in tsl_join */
  int32_t priority;
  int64_t deadline_ms; /* from now: for the answer */
  char group[TSL_TEXT_GROUP];
  char job[TSL_TEXT_JOB];
  char backend[16];
};

enum tsl_reply_flags {
  TSL_REPLY_FROM_GATE = 1, /* of a join: the slice of the epoch was acquired for this process */
};

struct tsl_reply {
  int32_t status; /* tsl_status */
  uint32_t epoch_generation;
  uint64_t epoch_counter;
  uint64_t waited_us;
  uint64_t bytes;               /* moved for this grant, or by this snapshot or restore */
  uint64_t move_us;             /* spent moving */
  uint32_t restored;            /* 1: state was brought back for this grant */
  uint32_t waiters;             /* in the group, as last known */
  char detail[TSL_TEXT_DETAIL]; /* for a person; "" when there is nothing to say */
  uint32_t flags;               /* tsl_reply_flags */
  uint32_t reserved;            /* 0 */
};

struct tsl_message {
  struct tsl_header header;
  union {
    struct tsl_hello hello;
    struct tsl_claim claim;
    struct tsl_join join;
    struct tsl_acquire acquire;
    struct tsl_cancel cancel;
    struct tsl_yield yield;
    struct tsl_pid pid;
    struct tsl_step step;
    struct tsl_reply reply;
    unsigned char bytes[TSL_MESSAGE_BYTES - 16];
  } u;
};

#ifdef __cplusplus
static_assert(sizeof(tsl_header) == 16 && sizeof(tsl_message) == TSL_MESSAGE_BYTES);
#else
_Static_assert(sizeof(struct tsl_message) == TSL_MESSAGE_BYTES, "every message is 256 bytes");
#endif
