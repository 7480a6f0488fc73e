/* Turns the node's answer into a status and a sentence with the value and the way out. */
#pragma once

#include "client/client.h"

void tsc_explain(const ts_client* c, const char* call, const struct tsl_reply* reply,
                 struct tsc_outcome* out);

/* No connection: which socket, why, and how to start the daemon. `error` is an errno. */
void tsc_explain_connect(const ts_client* c, int error, struct tsc_outcome* out);
