#include "client/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The job as tsctl takes it; a job that the node has named is found by its group. */
static void ask_about(const ts_client* c, const char* what, char* out, size_t out_bytes) {
  const struct tsl_join* join = &c->settings.join;
  if (join->job[0] != '\0') {
    snprintf(out, out_bytes, "; tsctl why %s/%s %s", join->group, join->job, what);
  } else {
    snprintf(out, out_bytes, "; tsctl jobs --group %s %s", join->group, what);
  }
}

/* What to do about it, where the node's own words may not say; NULL: they do. */
static const char* way_out(const ts_client* c, int32_t status) {
  switch (status) {
    case TS_ERR_VERSION:
      return "; install the libtimeslice that belongs to this tsnoded";
    case TS_ERR_UNKNOWN_GROUP:
      return "; correct TIMESLICE_GROUP";
    case TS_ERR_PERMISSION:
      return "; ask the operator to add you to the group's users";
    case TS_ERR_DEVICE_OWNED:
      return "; join the group that owns the device, or use other devices";
    case TS_ERR_NO_CLAIM:
      return c->settings.devices != NULL ? "; correct TIMESLICE_DEVICES or CUDA_VISIBLE_DEVICES"
                                         : "; tell the operator: tsctl doctor says why";
    case TS_ERR_ALREADY_JOINED:
      return "; one handle for each process: use the first, or ts_leave() it";
    case TS_ERR_NOT_JOINED:
      return "; the node daemon forgot this process: join anew";
    case TS_ERR_DEADLOCK:
      return "; take the groups in the same order in every job";
    case TS_ERR_NO_HOST_MEMORY:
      return "; in Slurm ask for more --mem, or let fewer jobs share the node";
    case TS_ERR_MASTER_DOWN:
      return "; start it: tsmasterd --config /etc/timeslice/master.toml";
    case TS_ERR_SHUTDOWN:
      return "; start it: tsnoded --config /etc/timeslice/node.toml";
    default:
      return NULL;
  }
}

static void find_way_out(const ts_client* c, int32_t status, char* out, size_t out_bytes) {
  const char* fixed = way_out(c, status);
  out[0] = '\0';
  if (fixed != NULL) {
    snprintf(out, out_bytes, "%s", fixed);
  } else if (status == TS_ERR_NO_DEVICE_MEMORY) {
    ask_about(c, "names the holders", out, out_bytes);
  } else if (status == TS_ERR_NOT_RELEASED) {
    ask_about(c, "names the process", out, out_bytes);
  } else if (status == TS_ERR_FAULTED) {
    ask_about(c, "says what happened", out, out_bytes);
  } else if (status == TS_ERR_TIMED_OUT) { /* its job may be gone by the time somebody asks */
    snprintf(out, out_bytes, "; tsctl jobs --group %s shows who holds", c->settings.join.group);
  }
}

void tsc_explain(const ts_client* c, const char* call, const struct tsl_reply* reply,
                 struct tsc_outcome* out) {
  const int32_t status = reply->status;
  if (status < TS_OK || status > TS_ERR_MASTER_DOWN) {
    tsc_say(out, TS_ERR_INTERNAL,
            "%s in group '%s': the node daemon at %s answered %d, which "
            "libtimeslice %s does not know: install the newer library",
            call, c->settings.join.group, c->settings.socket, (int)status, ts_version());
    return;
  }
  const char* detail = reply->detail[0] != '\0' ? reply->detail : "no reason given";
  char cure[TSC_TEXT_BYTES / 2];
  find_way_out(c, status, cure, sizeof cure);
  tsc_say(out, (ts_status)status, "%s in group '%s': %s: %s (node daemon at %s)%s", call,
          c->settings.join.group, ts_strerror((ts_status)status), detail, c->settings.socket, cure);
}

void tsc_explain_connect(const ts_client* c, int error, struct tsc_outcome* out) {
  const char* socket = c->settings.socket;
  if (error == ENOENT && secure_getenv("TIMESLICE_GROUP_ACTIVE") != NULL) {
    tsc_say(out, TS_ERR_UNAVAILABLE,
            "there is no socket %s, and Slurm's plugin has spoken to the node daemon there: mount "
            "its folder into the container",
            socket);
    return;
  }
  switch (error) {
    case ENOENT:
    case ECONNREFUSED:
      tsc_say(out, TS_ERR_UNAVAILABLE,
              "no node daemon at %s (%s); start it: tsnoded --config /etc/timeslice/node.toml",
              socket, error == ENOENT ? "no such socket" : "nobody listens there");
      return;
    case EACCES:
    case EPERM:
      tsc_say(out, TS_ERR_PERMISSION,
              "the socket %s may not be opened by this user: see the owner "
              "and mode of the socket and of its directory",
              socket);
      return;
    case EAGAIN:
      tsc_say(out, TS_ERR_UNAVAILABLE,
              "the node daemon at %s accepts no connection, its backlog is "
              "full; see its log",
              socket);
      return;
    case EPROTOTYPE:
      tsc_say(out, TS_ERR_UNAVAILABLE,
              "%s is not the socket of a node daemon: set TIMESLICE_SOCKET "
              "to the one in node.toml",
              socket);
      return;
    default:
      tsc_say(out, TS_ERR_UNAVAILABLE, "cannot connect to the node daemon at %s: error %d (%s)",
              socket, error, strerrordesc_np(error));
  }
}
