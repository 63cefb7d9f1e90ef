// SPDX-License-Identifier: Apache-2.0
/*
 * Limits lines that clients can cause: some of each format and owner in ten seconds, or some bytes of them, and none of
 * the others.
 */
#ifndef MK_BASE_LOG_LIMIT_H
#define MK_BASE_LOG_LIMIT_H

#include <monkey/base/buf.h>
#include <monkey/log.h>

/* What a line says of others like it. */
struct mk__log_limit_note {
    unsigned missing; /* were not written since the last one */
    bool is_last;     /* that is written for a while */
};

/*
 * Returns whether a line may be written now, and counts it otherwise; at MK_LOG_DEBUG always. `owner` is what it is
 * about, and only compared. Any thread.
 */
bool mk__log_limit_admits(enum mk_log_level level, const void *owner, const char *format,
                          struct mk__log_limit_note *ret);
/*
 * The same with a limit of bytes, MK_LOG_LIMITED_BYTES in ten seconds: those of the message as it is escaped, and
 * `more_bytes`.
 */
bool mk__log_limit_affords(const void *owner, const char *format, struct mk_str message, size_t more_bytes,
                           struct mk__log_limit_note *ret);
/* Forgets what was written. For tests. */
void mk__log_limit_clear(void);
/* Adds the note behind the message. */
void mk__log_limit_add_note(struct mk_buf *line, const struct mk__log_limit_note *note);

enum { MK__LOG_LIMIT_NOTE_BYTES = 56 };

#endif
