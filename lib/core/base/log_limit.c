// SPDX-License-Identifier: Apache-2.0
/*
 * Limits lines of logs (<monkey/base/log_limit.h>), and those of the error log that clients can cause
 * (base/log_limit.h).
 */
#include "base/log_limit.h"

#include <monkey/base/hash.h>
#include <monkey/base/log_limit.h>
#include <monkey/base/time.h>

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
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

/*
 * ── lines of the error log ──
 *
 * The call is known by its format, of which plugins that are loaded again have another one, and by its limit: compilers
 * keep formats of one text in one place.
 */

enum { ROWS = 256, LINES_MAX = 4, MESSAGE_BYTES = 900, LINE_COST = 48 /* time, level and names of the rest */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mk_log_limit_row rows[ROWS]; /* under the lock */

static bool admits_cost(const void *owner, const char *format, unsigned max, unsigned cost,
                        struct mk__log_limit_note *ret)
{
    const uintptr_t key[] = {(uintptr_t)format, (uintptr_t)owner, max};
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY, key, sizeof(key));
    pthread_mutex_lock(&lock);
    bool admits =
        mk_log_limit_admits(rows, ROWS, max, cost, hash, mk_time_monotonic_ms(), &ret->missing, &ret->is_last);
    pthread_mutex_unlock(&lock);
    return admits;
}

bool mk__log_limit_admits(enum mk_log_level level, const void *owner, const char *format,
                          struct mk__log_limit_note *ret)
{
    *ret = (struct mk__log_limit_note){0};
    return level == MK_LOG_DEBUG || admits_cost(owner, format, LINES_MAX, 1, ret);
}

/* With four bytes for each that the log escapes. */
static size_t get_escaped_bytes(struct mk_str message)
{
    size_t n = message.len;
    for (size_t i = 0; i < message.len; i++) {
        unsigned char c = (unsigned char)message.p[i];
        n += c < 0x20 || c >= 0x7f || c == '\\' ? 3 : 0;
    }
    return n;
}

bool mk__log_limit_affords(const void *owner, const char *format, struct mk_str message, size_t more_bytes,
                           struct mk__log_limit_note *ret)
{
    unsigned cost = (unsigned)(get_escaped_bytes(message) + more_bytes + LINE_COST);
    *ret = (struct mk__log_limit_note){0};
    return admits_cost(owner, format, MK_LOG_LIMITED_BYTES, cost, ret);
}

void mk__log_limit_clear(void)
{
    memset(rows, 0, sizeof(rows));
}

void mk__log_limit_add_note(struct mk_buf *line, const struct mk__log_limit_note *note)
{
    if (note->missing)
        mk_buf_addf(line, " (and %u more since the last such line)", note->missing);
    else if (note->is_last)
        mk_buf_addf(line, " (more of these are only counted for %d s)", MK_LOG_LIMIT_MS / 1000);
}

/* Prints a message; the line has room for a note behind it. */
static void print_message(struct mk_buf *line, char *storage, const char *format, va_list args)
{
    int n = vsnprintf(storage, MESSAGE_BYTES, format, args);
    mk_buf_init_fixed(line, storage, MESSAGE_BYTES + MK__LOG_LIMIT_NOTE_BYTES);
    line->len = n < 0 ? 0 : n < MESSAGE_BYTES ? (size_t)n : MESSAGE_BYTES - 1;
}

void mk_log_limited(enum mk_log_level level, const void *owner, const char *format, ...)
{
    MK_UNINITIALIZED char message[MESSAGE_BYTES + MK__LOG_LIMIT_NOTE_BYTES];
    struct mk__log_limit_note note;
    struct mk_buf line;
    va_list args;
    if (!mk_log_wants(level) || !mk__log_limit_admits(level, owner, format, &note))
        return;
    va_start(args, format);
    print_message(&line, message, format, args);
    va_end(args);
    mk__log_limit_add_note(&line, &note);
    mk_log(level, "%s", mk_buf_cstr(&line));
}

void mk_log_limited_text(enum mk_log_level level, const void *owner, const char *format, ...)
{
    MK_UNINITIALIZED char message[MESSAGE_BYTES + MK__LOG_LIMIT_NOTE_BYTES];
    struct mk__log_limit_note note;
    struct mk_buf line;
    va_list args;
    if (!mk_log_wants(level))
        return;
    va_start(args, format);
    print_message(&line, message, format, args);
    va_end(args);
    if (!mk__log_limit_affords(owner, format, mk_buf_str(&line), 0, &note))
        return;
    mk__log_limit_add_note(&line, &note);
    mk_log(level, "%s", mk_buf_cstr(&line));
}
