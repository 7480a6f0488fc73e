/* What a participant asks for, from its options, then its environment, then the defaults. */
#pragma once

#include <stdbool.h>
#include <sys/un.h>
#include <timeslice/timeslice.h>

#include "local/protocol.h"

struct tsc_settings {
  bool active; /* false: outside, nothing names a socket or a group */
  char socket[sizeof(((struct sockaddr_un*)0)->sun_path)];
  struct tsl_join join;
  char* devices; /* owned; NULL: claim what the process may open */
  int64_t deadline_ms;
};

/* On failure nothing needs to be freed. */
ts_status tsc_settings_read(const ts_join_options* options, struct tsc_settings* out);
void tsc_settings_free(struct tsc_settings* settings);

/* Copies a caller's sized struct into `known` (zeroed first); refuses one that asks for more than
 * this library knows. `name` is the struct's, for the error. */
ts_status tsc_sized_in(const void* given, size_t known_bytes, void* known, const char* name);
/* Refuses a struct to be filled whose size was not set. */
ts_status tsc_sized_out(size_t size, const char* name);
