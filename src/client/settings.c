#include "client/settings.h"

#include <stdlib.h>
#include <string.h>

#include "client/failure.h"

enum {
  kStructLimit = 4096, /* more is an uninitialised size */
  kJoinDeadlineMs = 10000,
  kDevicesLimit = 64 * (TSL_TEXT_DEVICES - 1),
};

ts_status tsc_sized_out(size_t size, const char* name) {
  if (size >= sizeof(size_t) && size <= kStructLimit) return TS_OK;
  return tsc_fail(TS_ERR_INVALID, "%s.size is %zu: set it to sizeof(%s) before the call", name,
                  size, name);
}

ts_status tsc_sized_in(const void* given, size_t known_bytes, void* known, const char* name) {
  memset(known, 0, known_bytes);
  if (given == NULL) return TS_OK;
  size_t size;
  memcpy(&size, given, sizeof size);
  const ts_status fits = tsc_sized_out(size, name);
  if (fits != TS_OK) return fits;
  const unsigned char* bytes = given;
  for (size_t i = known_bytes; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return tsc_fail(TS_ERR_INVALID,
                    "%s has %zu bytes and uses byte %zu; libtimeslice %s knows %zu: "
                    "install the newer library",
                    name, size, i, ts_version(), known_bytes);
  }
  memcpy(known, given, size < known_bytes ? size : known_bytes);
  return TS_OK;
}

/* NULL for "" too: an empty variable is one that nobody set. */
static const char* choose(const char* option, const char* variable) {
  const char* text = option != NULL ? option : secure_getenv(variable);
  return text == NULL || *text == '\0' ? NULL : text;
}

static bool is_name(const char* text) {
  static const char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return strspn(text, kAllowed) == strlen(text);
}

/* Copies a name into its field of the join message. */
static ts_status take_name(const char* text, const char* what, const char* variable, char* field,
                           size_t field_bytes) {
  if (text == NULL) return TS_OK;
  const size_t length = strlen(text);
  if (length >= field_bytes) {
    return tsc_fail(TS_ERR_INVALID, "the %s '%.40s...' has %zu bytes, at most %zu fit: see %s",
                    what, text, length, field_bytes - 1, variable);
  }
  if (!is_name(text)) {
    return tsc_fail(TS_ERR_INVALID,
                    "the %s '%s' may only have letters, digits, '.', '_' and '-': "
                    "see %s",
                    what, text, variable);
  }
  memcpy(field, text, length + 1);
  return TS_OK;
}

/* Own and small: newer headers rename strtol to a symbol that older systems lack. */
static bool parse_number(const char* text, int64_t low, int64_t high, int64_t* out) {
  const bool negative = *text == '-';
  const char* digit = text + (negative ? 1 : 0);
  if (*digit == '\0') return false;
  int64_t value = 0;
  for (; *digit != '\0'; ++digit) {
    if (*digit < '0' || *digit > '9') return false;
    value = value * 10 + (*digit - '0');
    if (value > INT64_C(0x100000000)) return false;
  }
  *out = negative ? -value : value;
  return *out >= low && *out <= high;
}

/* `value` is the option's, 0: the variable decides. */
static ts_status take_number(const char* option, const char* variable, int64_t low, int64_t high,
                             int64_t* value) {
  const char* text = choose(NULL, variable);
  if (*value != 0) {
    if (*value >= low && *value <= high) return TS_OK;
    return tsc_fail(TS_ERR_INVALID, "ts_join_options.%s=%lld is not from %lld to %lld", option,
                    (long long)*value, (long long)low, (long long)high);
  }
  if (text == NULL || parse_number(text, low, high, value)) return TS_OK;
  return tsc_fail(TS_ERR_INVALID, "%s='%.40s' is not a whole number from %lld to %lld", variable,
                  text, (long long)low, (long long)high);
}

static ts_status take_socket(const char* text, struct tsc_settings* out) {
  if (text == NULL) text = TSL_SOCKET_DEFAULT;
  if (strlen(text) >= sizeof out->socket) {
    return tsc_fail(TS_ERR_INVALID,
                    "the socket path '%.60s...' has %zu bytes, at most %zu fit: see "
                    "TIMESLICE_SOCKET",
                    text, strlen(text), sizeof out->socket - 1);
  }
  strcpy(out->socket, text);
  return TS_OK;
}

static ts_status take_devices(const char* option, struct tsc_settings* out) {
  const char* text = choose(option, "TIMESLICE_DEVICES");
  if (text == NULL) {
    text = secure_getenv("CUDA_VISIBLE_DEVICES");
    if (text == NULL) return TS_OK;
    if (*text == '\0') text = "none"; /* set and empty hides every device */
  }
  if (strlen(text) > kDevicesLimit) {
    return tsc_fail(TS_ERR_INVALID,
                    "the device list '%.40s...' has %zu bytes, at most %d fit: see "
                    "TIMESLICE_DEVICES and CUDA_VISIBLE_DEVICES",
                    text, strlen(text), kDevicesLimit);
  }
  out->devices = strdup(text);
  return out->devices != NULL ? TS_OK : tsc_fail(TS_ERR_INTERNAL, "out of memory");
}

static ts_status outside(void) {
  const char* required = choose(NULL, "TIMESLICE_REQUIRED");
  if (required == NULL || strcmp(required, "0") == 0) return TS_OK;
  return tsc_fail(
      TS_ERR_UNAVAILABLE,
      "TIMESLICE_REQUIRED=%.20s, but neither TIMESLICE_GROUP nor "
      "TIMESLICE_SOCKET is set here: the job was started without timeslice; start it with "
      "tsctl run --group NAME -- PROGRAM",
      required);
}

/* sbatch and srun promise turns in a job's environment; the Slurm plugin of the node that starts it
 * takes the promise over. Ranks that join each by itself would be as many jobs. */
static ts_status check_promise(void) {
  const char* required = choose(NULL, "TIMESLICE_REQUIRED");
  if (required == NULL || strcmp(required, "slurm") != 0) return TS_OK;
  const char* node = choose(NULL, "SLURMD_NODENAME");
  return tsc_fail(TS_ERR_UNAVAILABLE,
                  "this job asked Slurm for turns, and node %.64s has started it without the Slurm "
                  "plugin: tell its administrator that its plugstack.conf lacks spank_timeslice.so",
                  node != NULL ? node : "(unknown)");
}

static ts_status take_names(const ts_join_options* given, struct tsc_settings* out) {
  const char* group = choose(given->group, "TIMESLICE_GROUP");
  if (group == NULL) {
    return tsc_fail(TS_ERR_INVALID,
                    "no group is named: set TIMESLICE_GROUP, give group=, or start it with "
                    "tsctl run --group NAME -- PROGRAM");
  }
  ts_status status =
      take_name(group, "group", "TIMESLICE_GROUP", out->join.group, sizeof out->join.group);
  if (status != TS_OK) return status;
  status = take_name(choose(given->job, "TIMESLICE_JOB"), "job", "TIMESLICE_JOB", out->join.job,
                     sizeof out->join.job);
  if (status != TS_OK) return status;
  return take_name(choose(given->backend, "TIMESLICE_BACKEND"), "backend", "TIMESLICE_BACKEND",
                   out->join.backend, sizeof out->join.backend);
}

static ts_status take_numbers(const ts_join_options* given, struct tsc_settings* out) {
  int64_t gang = given->gang;
  int64_t priority = given->priority;
  ts_status status = take_number("gang", "TIMESLICE_GANG", 0, TSL_MOST_IN_GANG, &gang);
  if (status != TS_OK) return status;
  status = take_number("priority", "TIMESLICE_PRIORITY", -TSL_MOST_PRIORITY, TSL_MOST_PRIORITY,
                       &priority);
  if (status != TS_OK) return status;
  out->join.gang = (uint32_t)gang;
  out->join.priority = (int32_t)priority;
  out->deadline_ms = given->deadline_ms > 0 ? given->deadline_ms : kJoinDeadlineMs;
  return TS_OK;
}

ts_status tsc_settings_read(const ts_join_options* options, struct tsc_settings* out) {
  memset(out, 0, sizeof *out);
  ts_join_options given;
  ts_status status = tsc_sized_in(options, sizeof given, &given, "ts_join_options");
  if (status == TS_OK) status = check_promise();
  if (status != TS_OK) return status;
  const char* socket = choose(given.socket, "TIMESLICE_SOCKET");
  if (socket == NULL && choose(given.group, "TIMESLICE_GROUP") == NULL) return outside();
  out->active = true;
  status = take_socket(socket, out);
  if (status != TS_OK) return status;
  status = take_names(&given, out);
  if (status != TS_OK) return status;
  status = take_numbers(&given, out);
  if (status != TS_OK) return status;
  return take_devices(given.devices, out);
}

void tsc_settings_free(struct tsc_settings* settings) {
  free(settings->devices);
  settings->devices = NULL;
}
