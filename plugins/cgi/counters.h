// SPDX-License-Identifier: Apache-2.0
/*
 * What is counted.
 */
#ifndef CGI_COUNTERS_H
#define CGI_COUNTERS_H

#include <monkey/plugin.h>

enum count { COUNT_REQUESTS, COUNT_STARTS, COUNT_RUNNING, COUNT_REFUSED, COUNT_FAILURES, COUNT_TIMEOUTS, COUNTS };

/* Opens the counters, in a start of the plugin. */
void counters_open(void);
void counters_add(const struct mk_worker *worker, enum count count, int64_t n);

#endif
