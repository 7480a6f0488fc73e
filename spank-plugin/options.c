#include "options.h"

#include <stdio.h>
#include <string.h>

#include "number.h"

#define BACKENDS "cuda, none or turns"

const struct tsp_option_text tsp_option_texts[TSP_OPTIONS] = {
    [TSP_GROUP] = {"timeslice-group", "TIMESLICE_GROUP", "NAME",
                   "[timeslice] take turns on the GPUs with the other jobs of group NAME"},
    [TSP_PRIORITY] = {"timeslice-priority", "TIMESLICE_PRIORITY", "N",
                      "[timeslice] -10000 to 10000, larger goes first where the group's policy is "
                      "priority"},
    [TSP_BACKEND] = {"timeslice-backend", "TIMESLICE_BACKEND", "NAME",
                     "[timeslice] how device state moves: " BACKENDS "; default: the node's"},
    [TSP_MODE] = {"timeslice-mode", "TIMESLICE_MODE", "cooperative",
                  "[timeslice] cooperative: the program asks for its turns; transparent is not "
                  "available yet"},
    [TSP_LAUNCH] = {"timeslice-launch", "TIMESLICE_LAUNCH", "gated|open",
                    "[timeslice] gated: tasks start when their first turn has come; open: at once"},
    [TSP_GANG] = {"timeslice-gang", "TIMESLICE_GANG", "N|tasks|no",
                  "[timeslice] how many processes share one turn; default: the tasks of the step"},
};

static bool is_name(const char* text) {
  static const char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const size_t length = strlen(text);
  return length > 0 && length < TSL_TEXT_GROUP && strspn(text, kAllowed) == length;
}

static bool is_number(const char* text, int64_t low, int64_t high) {
  int64_t value = 0;
  return tsp_number(text, low, high, &value);
}

static bool is_one_of(const char* text, const char* a, const char* b) {
  return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* What it should be, or NULL when it is. */
static const char* wanted(enum tsp_option which, const char* value) {
  switch (which) {
    case TSP_GROUP:
      return is_name(value) ? NULL : "use 1 to 63 of A-Z a-z 0-9 . _ -";
    case TSP_PRIORITY:
      return is_number(value, -TSL_MOST_PRIORITY, TSL_MOST_PRIORITY)
                 ? NULL
                 : "use a whole number from -10000 to 10000";
    case TSP_BACKEND:
      return is_name(value) && strlen(value) < sizeof((struct tsl_join*)0)->backend
                 ? NULL
                 : "use " BACKENDS;
    case TSP_MODE:
      if (strcmp(value, "transparent") == 0) return "it is not available yet; use cooperative";
      return strcmp(value, "cooperative") == 0 ? NULL : "use cooperative";
    case TSP_LAUNCH:
      return is_one_of(value, "gated", "open") ? NULL : "use gated or open";
    case TSP_GANG:
      return is_one_of(value, "tasks", "no") || is_number(value, 0, TSL_MOST_IN_GANG)
                 ? NULL
                 : "use a whole number up to 1000000, tasks or no";
    default:
      return NULL;
  }
}

/* A value may be anything: it is shown with what can be printed of it. */
static void shown(const char* value, char* out, size_t bytes) {
  size_t i = 0;
  for (; value[i] != '\0' && i + 1 < bytes; ++i) {
    out[i] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
  }
  out[i] = '\0';
}

bool tsp_check(enum tsp_option which, const char* said, const char* value, char* problem) {
  const char* instead = wanted(which, value);
  if (instead == NULL) return true;
  char readable[TSP_VALUE_BYTES];
  shown(value, readable, sizeof readable);
  snprintf(problem, TSP_PROBLEM_BYTES, "%s=%s: %s", said, readable, instead);
  return false;
}

bool tsp_wish(struct tsp_wishes* wishes, enum tsp_option which, const char* said, const char* value,
              char* problem) {
  if (!tsp_check(which, said, value, problem)) return false;
  snprintf(wishes->text[which], TSP_VALUE_BYTES, "%s", value);
  return true;
}

int32_t tsp_priority(const struct tsp_wishes* wishes) {
  int64_t value = 0;
  tsp_number(wishes->text[TSP_PRIORITY], INT32_MIN, INT32_MAX, &value);
  return (int32_t)value;
}

bool tsp_is_open(const struct tsp_wishes* wishes) {
  return strcmp(wishes->text[TSP_LAUNCH], "open") == 0;
}

uint32_t tsp_gang(const struct tsp_wishes* wishes, uint32_t tasks) {
  const char* text = wishes->text[TSP_GANG];
  int64_t value = 0;
  if (tsp_number(text, 0, TSL_MOST_IN_GANG, &value)) return (uint32_t)value;
  return strcmp(text, "no") == 0 ? 0 : tasks;
}
