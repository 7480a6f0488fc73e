#include "gate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/client.h"
#include "client/clock.h"
#include "client/handle.h"
#include "client/link.h"
#include "exchange.h"

enum {
  kQuietMs = 200,   /* a wait of this length is not worth a line */
  kGatherMs = 1000, /* between two looks at whether all tasks of the step have come */
};

struct gate {
  const struct tsp_step* step;
  ts_client* client;
  bool speaks;
  bool has_spoken;
  int64_t since;
  char* error;
};

static bool fail(struct gate* g, const char* why) {
  snprintf(g->error, TSP_WHY_BYTES, "%s", why);
  return false;
}

/* The task's process, on behalf of the user. */
static bool enter(struct gate* g) {
  const struct tsp_step* step = g->step;
  char devices[TSP_ENVIRONMENT_BYTES];
  tsp_step_devices(step, devices, sizeof devices);
  struct tsc_settings settings = {
      .active = true,
      .join = {.gang = step->gang,
               .priority = tsp_priority(&step->wishes),
               .flags = TSL_JOIN_AT_GATE},
      .deadline_ms = tsp_plugin.words.gather_ms}; /* a master may restart meanwhile */
  strcpy(settings.socket, tsp_plugin.words.socket);
  strcpy(settings.join.group, step->wishes.text[TSP_GROUP]);
  strcpy(settings.join.job, step->name);
  strcpy(settings.join.backend, step->wishes.text[TSP_BACKEND]);
  if (devices[0] != '\0') settings.devices = strdup(devices);
  return tsc_join_as(&settings, &g->client) == TS_OK || fail(g, ts_last_error());
}

static bool outlook(const struct gate* g, struct tsp_answer* out) {
  struct tsl_message ask = tsc_message(TSL_OUTLOOK, 0);
  strcpy(ask.u.step.group, g->step->wishes.text[TSP_GROUP]);
  strcpy(ask.u.step.job, g->step->name);
  tsp_exchange(tsp_plugin.words.socket, tsp_plugin.words.timeout_ms, NULL, &ask, NULL, out);
  return out->ok;
}

static void tell(struct gate* g, const struct tsp_answer* look) {
  if (g->has_spoken || !g->speaks) return;
  g->has_spoken = true;
  slurm_spank_log(
      "timeslice: job %s/%s waits for its first turn before it starts: %s. Slurm's time "
      "limit runs meanwhile.",
      g->step->wishes.text[TSP_GROUP], g->step->name, look->reply.detail);
}

/* False: some of the step's tasks have not come, and it is time to say that they will not. */
static bool look_around(struct gate* g, bool* gathered) {
  struct tsp_answer look;
  if (!outlook(g, &look)) return true; /* the library comes back by itself, or says why not */
  *gathered = look.reply.bytes == 0;
  if (*gathered) {
    tell(g, &look);
    return true;
  }
  const int64_t limit = tsp_plugin.words.gather_ms;
  if (tsc_now() < tsc_after(g->since, limit)) return true;
  snprintf(g->error, TSP_WHY_BYTES,
           "%s after %lld ms, and none starts without the others; their own messages say why",
           look.reply.detail, (long long)limit);
  return false;
}

/* False: not yet. TS_ERR_BUSY may be that, or the node's answer: then nothing is asked any more. */
static bool settled_within(struct gate* g, int ms, ts_status* status) {
  const int64_t until = tsc_after(tsc_now(), ms);
  for (;;) {
    *status = ts_acquire_finish(g->client, NULL);
    if (*status != TS_ERR_BUSY || !g->client->is_started) return true;
    const int64_t left = (until - tsc_now()) / TSC_MS;
    if (ms >= 0 && left <= 0) return false;
    struct pollfd ready = {.fd = ts_fd(g->client), .events = POLLIN};
    if (ready.fd < 0) {
      *status = TS_ERR_INTERNAL;
      return true;
    }
    poll(&ready, 1, ms < 0 ? -1 : (int)left);
  }
}

static bool wait_for_turn(struct gate* g) {
  g->since = tsc_now();
  if (ts_acquire_start(g->client, NULL) != TS_OK) return fail(g, ts_last_error());
  ts_status status = TS_OK;
  bool settled = settled_within(g, kQuietMs, &status);
  for (bool gathered = false; !settled;) {
    if (!gathered && !look_around(g, &gathered)) return false;
    settled = settled_within(g, gathered ? -1 : kGatherMs, &status);
  }
  if (status != TS_OK) return fail(g, ts_last_error());
  if (g->has_spoken) {
    slurm_spank_log("timeslice: job %s/%s starts after %.1f s", g->step->wishes.text[TSP_GROUP],
                    g->step->name, (double)(tsc_now() - g->since) / 1e9);
  }
  return true;
}

static const int kEnds[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
enum { kEndsCount = sizeof kEnds / sizeof kEnds[0] };

struct manners {
  sigset_t mask;
  struct sigaction actions[kEndsCount];
};

/* What ends a task ends one that waits. slurmstepd lets none through to a task before it starts:
 * that of 22.05 blocks them, that of 24.11 handles them, in a thread that this process lacks. */
static void mind_signals(struct manners* before) {
  const struct sigaction plain = {.sa_handler = SIG_DFL};
  sigset_t ends;
  sigemptyset(&ends);
  for (int i = 0; i < kEndsCount; ++i) {
    sigaddset(&ends, kEnds[i]);
    sigaction(kEnds[i], &plain, &before->actions[i]);
  }
  sigprocmask(SIG_UNBLOCK, &ends, &before->mask);
}

static void mind_signals_no_more(const struct manners* before) {
  sigprocmask(SIG_SETMASK, &before->mask, NULL);
  for (int i = 0; i < kEndsCount; ++i) sigaction(kEnds[i], &before->actions[i], NULL);
}

static bool pass(struct gate* g) {
  /* Slurm signals no process that still has the name of its own daemon. The exec gives another. */
  prctl(PR_SET_NAME, "timeslice-gate");
  /* Whoever loses its slurmstepd here would start without anybody to end it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != g->step->daemon) return fail(g, "its slurmstepd has ended");
  const bool passed = enter(g) && wait_for_turn(g);
  prctl(PR_SET_PDEATHSIG, 0);
  return passed;
}

bool tsp_gate(const struct tsp_step* step, bool speaks, char* error) {
  struct gate g = {.step = step, .speaks = speaks, .error = error};
  const uid_t root = geteuid();
  struct manners before;
  if (seteuid(step->uid) != 0) return fail(&g, "cannot become the job's user");
  mind_signals(&before);
  bool passed = pass(&g);
  mind_signals_no_more(&before);
  if (seteuid(root) != 0) passed = fail(&g, "cannot become root again");
  /* The connection ends with the exec: the place is the task's, and its program joins for it. */
  return passed;
}
