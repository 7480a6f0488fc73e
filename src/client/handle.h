/* What every exported function checks first, in this order: the handle, a fork, outside. */
#pragma once

#include "client/client.h"

/* ts_join() with settings that the caller has made. Takes `settings` over, whatever it answers. */
ts_status tsc_join_as(struct tsc_settings* settings, ts_client** out);

/* Fails with the sentence kept for ts_last_error(). */
ts_status tsc_check_handle(const ts_client* c, const char* call);
