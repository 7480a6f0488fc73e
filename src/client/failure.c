#include "client/failure.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key and no thread-local array: a library that is loaded late finds little room in static TLS.
 */
static pthread_key_t g_key;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static int g_key_failed;

static void make_key(void) {
  g_key_failed = pthread_key_create(&g_key, free);
}

static char* own_text(int make) {
  pthread_once(&g_once, make_key);
  if (g_key_failed != 0) return NULL;
  char* text = pthread_getspecific(g_key);
  if (text != NULL || !make) return text;
  text = calloc(1, TSC_TEXT_BYTES);
  if (text != NULL && pthread_setspecific(g_key, text) != 0) {
    free(text);
    text = NULL;
  }
  return text;
}

void tsc_say(struct tsc_outcome* outcome, ts_status status, const char* format, ...) {
  outcome->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(outcome->text, sizeof outcome->text, format, args);
  va_end(args);
}

ts_status tsc_fail(ts_status status, const char* format, ...) {
  char* text = own_text(1);
  if (text == NULL) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(text, TSC_TEXT_BYTES, format, args);
  va_end(args);
  return status;
}

ts_status tsc_answer(const struct tsc_outcome* outcome) {
  if (outcome->status == TS_OK) return TS_OK;
  return tsc_fail(outcome->status, "%s", outcome->text);
}

const char* ts_last_error(void) {
  const char* text = own_text(0);
  return text == NULL ? "" : text;
}

const char* ts_strerror(ts_status status) {
  static const char* const names[] = {
      "OK",          "INVALID",          "UNAVAILABLE",    "FORKED",       "INTERNAL",
      "TIMED_OUT",   "CANCELLED",        "BUSY",           "NOT_JOINED",   "ALREADY_JOINED",
      "NOT_ENTERED", "UNKNOWN_GROUP",    "PERMISSION",     "DEVICE_OWNED", "NO_CLAIM",
      "DEADLOCK",    "NO_DEVICE_MEMORY", "NO_HOST_MEMORY", "NOT_RELEASED", "FAULTED",
      "EVICTED",     "PAUSED",           "STALE",          "VERSION",      "NO_SUCH_PROCESS",
      "NO_CONTEXT",  "UNSUPPORTED",      "PROTOCOL",       "SHUTDOWN",     "MASTER_DOWN"};
  const unsigned number = (unsigned)status;
  return number < sizeof names / sizeof names[0] ? names[number] : "UNKNOWN";
}

const char* ts_version(void) {
#define TSC_TEXT_OF(x) #x
#define TSC_VERSION_TEXT(a, b, c) TSC_TEXT_OF(a) "." TSC_TEXT_OF(b) "." TSC_TEXT_OF(c)
  return TSC_VERSION_TEXT(TS_VERSION_MAJOR, TS_VERSION_MINOR, TS_VERSION_PATCH);
}
