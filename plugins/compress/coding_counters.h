// SPDX-License-Identifier: Apache-2.0
/*
 * Counts compressed responses and their bytes by coding, and responses that were not compressed for lack of room or
 * processor time. The counters are those of the process.
 */
#ifndef COMPRESS_CODING_COUNTERS_H
#define COMPRESS_CODING_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/plugin.h>

enum coding_count { CODING_RESPONSES, CODING_BYTES_IN, CODING_BYTES_OUT, CODING_SKIPPED, CODING_COUNTS };

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void coding_counters_open(void);
/* Adds to a counter. In the thread of the worker; NULL: none. */
void coding_counters_add(enum coding_count count, enum mk_coding coding, const struct mk_worker *worker, size_t n);

#endif
