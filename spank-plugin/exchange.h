/* One request to the node daemon and its answer, within a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "local/protocol.h"

enum { TSP_WHY_BYTES = 512 };

struct tsp_answer {
  bool ok;
  struct tsl_reply reply;  /* of the request, where one came */
  char why[TSP_WHY_BYTES]; /* not ok: a sentence without its end */
};

/* What comes back besides the reply. */
struct tsp_text {
  char* bytes; /* ends in NUL */
  size_t room;
};

/* Connects as whoever it runs as, greets, sends the claim and the request, waits for its reply.
 * `claim` and `text` may be NULL. Leaves nothing open. */
void tsp_exchange(const char* socket, int timeout_ms, const char* claim,
                  const struct tsl_message* request, struct tsp_text* text, struct tsp_answer* out);
