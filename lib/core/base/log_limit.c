// SPDX-License-Identifier: Apache-2.0
/*
 * Limits lines of a log (<monkey/base/log_limit.h>).
 */
#include <monkey/base/log_limit.h>

#include <monkey/base/hash.h>

#include <assert.h>
#include <string.h>

/* With the 0 after the text. */
uint64_t mk_log_limit_hash(uint64_t hash, const char *text)
{
    return mk_hash_add(MK_HASH_EMPTY ^ hash, text, strlen(text) + 1);
}

/* Returns the row of the kind, or else a free row or the oldest one. */
static struct mk_log_limit_row *find_row(struct mk_log_limit_row *rows, size_t n, uint64_t hash)
{
    struct mk_log_limit_row *oldest = rows;
    for (struct mk_log_limit_row *row = rows; row < rows + n; row++) {
        if (row->logged_ms && row->hash == hash)
            return row;
        if (row->logged_ms < oldest->logged_ms)
            oldest = row;
    }
    return oldest;
}

bool mk_log_limit_admits(struct mk_log_limit_row *rows, size_t n, unsigned max, unsigned cost, uint64_t hash,
                         uint64_t now_ms, unsigned *ret_missing, bool *ret_is_last)
{
    assert(n > 0 && max > 0);
    struct mk_log_limit_row *row = find_row(rows, n, hash);
    now_ms += !now_ms;
    bool is_young = row->logged_ms && now_ms - row->logged_ms < MK_LOG_LIMIT_MS;
    if (is_young && (row->hash != hash || row->written >= max)) {
        row->missing++;
        return false;
    }
    *ret_missing = is_young ? 0 : row->missing;
    if (!is_young)
        *row = (struct mk_log_limit_row){.hash = hash, .logged_ms = now_ms};
    row->written += cost;
    *ret_is_last = row->written >= max;
    return true;
}

bool mk_log_limit_is_due(struct mk_log_limit_row *rows, size_t n, uint64_t hash, uint64_t now_ms, unsigned *ret_missing)
{
    bool is_last;
    return mk_log_limit_admits(rows, n, 1, 1, hash, now_ms, ret_missing, &is_last);
}
