/* One connection to the node's socket: whole messages out and in, never blocking, no signal raised.
 */
#pragma once

#include <stdbool.h>

#include "local/protocol.h"

/* A new close-on-exec descriptor, or -errno; -EAGAIN: the daemon's backlog is full, try again. */
int tsc_connect(const char* path);

/* 0, or -errno: the connection is of no use any more. Async-signal-safe. */
int tsc_send(int fd, const struct tsl_message* message);

enum tsc_received { TSC_MESSAGE, TSC_NOTHING, TSC_CLOSED, TSC_TORN };

/* TSC_TORN: what came is no message of this protocol; `bytes` says how long it was. */
enum tsc_received tsc_receive(int fd, struct tsl_message* message, long* bytes);

/* A message of `type`, empty otherwise. */
struct tsl_message tsc_message(enum tsl_type type, uint64_t request);
/* Ends the acquire of that number, whose number it takes: one of its own could be overtaken by what
 * another thread sends. Async-signal-safe. */
struct tsl_message tsc_cancel_of(uint64_t acquire);
