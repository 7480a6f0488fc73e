/* Time as the client counts it: nanoseconds of CLOCK_MONOTONIC. */
#pragma once

#include <stdint.h>
#include <time.h>

#define TSC_NEVER INT64_MAX
#define TSC_MS INT64_C(1000000)

static inline int64_t tsc_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 * TSC_MS + now.tv_nsec;
}

static inline int64_t tsc_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* `delay_ms` after `from`; never, when that is beyond what the clock can count. */
static inline int64_t tsc_after(int64_t from, int64_t delay_ms) {
  return delay_ms > (TSC_NEVER - from) / TSC_MS ? TSC_NEVER : from + delay_ms * TSC_MS;
}

static inline struct timespec tsc_timespec(int64_t ns) {
  struct timespec value = {.tv_sec = (time_t)(ns / (1000 * TSC_MS)),
                           .tv_nsec = (long)(ns % (1000 * TSC_MS))};
  return value;
}
