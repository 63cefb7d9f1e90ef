// SPDX-License-Identifier: Apache-2.0
/*
 * What the proxy counts.
 */
#ifndef PROXY_COUNTERS_H
#define PROXY_COUNTERS_H

#include <monkey/request.h>

enum count { COUNT_REQUESTS, COUNT_CONNECTIONS, COUNT_RETRIES, COUNT_FAILURES, COUNT_TIMEOUTS, COUNTS };

/* Once, in the start of the process. */
void counters_open(void);
void counters_add(const struct mk_request *req, enum count count);

#endif
