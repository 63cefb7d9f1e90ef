// SPDX-License-Identifier: Apache-2.0
/*
 * Limits lines of a log that clients cause: each kind of line once in ten seconds, and as many kinds as there are rows.
 * Lines that were not written are counted for the next one.
 */
#ifndef MONKEY_LOG_LIMIT_H
#define MONKEY_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

enum { MK_LOG_LIMIT_MS = 10000 };

/* One kind of line; zeros at first. Its members are the library's. */
struct mk_log_limit_row {
    uint64_t hash;
    uint64_t logged_ms; /* 0: the row is free */
    unsigned written;   /* the cost of the lines since then, with the first one */
    unsigned missing;   /* lines that were not written since then */
};

/* Returns a hash of the text, and of what `hash` is of: 0 at first. Not keyed: clients must not choose the texts. */
MK_API uint64_t mk_log_limit_hash(uint64_t hash, const char *text);

/*
 * Returns whether a line of the kind `hash` may be written now, with the number of lines before that were not written;
 * counts it otherwise. A new kind takes a free row or the oldest one, with its number, unless that is younger than
 * MK_LOG_LIMIT_MS. `now_ms` is of a clock that never goes back. One thread at a time.
 */
MK_API bool mk_log_limit_is_due(struct mk_log_limit_row *rows, size_t n, uint64_t hash, uint64_t now_ms,
                                unsigned *ret_missing);

/*
 * The same for a budget: what is written of each kind in that time costs `max`, and more by a part of the last line at
 * most. The cost of a line is 1, for a number of lines, or its bytes. `*ret_is_last`: more are not written for a while.
 */
MK_API bool mk_log_limit_admits(struct mk_log_limit_row *rows, size_t n, unsigned max, unsigned cost, uint64_t hash,
                                uint64_t now_ms, unsigned *ret_missing, bool *ret_is_last);

MK_C_END

#endif
