/* What every exported function checks first, in this order: the handle, a fork, outside. */
#pragma once

#include "client/client.h"

/* Fails with the sentence kept for ts_last_error(). */
ts_status tsc_check_handle(const ts_client* c, const char* call);
