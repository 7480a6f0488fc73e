/* What went wrong last, as a sentence, for each thread. */
#pragma once

#include <timeslice/timeslice.h>

enum { TSC_TEXT_BYTES = 512 };

/* A status and, unless it is TS_OK, a sentence that names the value and the way out. */
struct tsc_outcome {
  ts_status status;
  char text[TSC_TEXT_BYTES];
};

/* Fills `outcome`. */
void tsc_say(struct tsc_outcome* outcome, ts_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps the sentence for ts_last_error() of this thread and answers the status. */
ts_status tsc_fail(ts_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));
ts_status tsc_answer(const struct tsc_outcome* outcome);
