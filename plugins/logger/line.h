// SPDX-License-Identifier: Apache-2.0
/*
 * A line while it is put together, in storage that is given: it leaves as printable ASCII whatever a client has sent.
 *
 * Of its room a part is set aside for what the server says itself (literals, numbers); values of clients share the
 * rest, and are cut where it ends.
 */
#ifndef LOGGER_LINE_H
#define LOGGER_LINE_H

#include <monkey/str.h>

enum { LINE_BYTES_MAX = 8192, LINE_FIXED_MAX = 4096, LINE_VARIABLE_FIXED = 48 };

/*
 * How bytes leave that cannot stay as they are: all but printable ASCII, quotes and backslashes.
 *
 *     WORD      \xNN, blanks too: the value stays one word
 *     QUOTED    \xNN
 *     JSON      \u00NN, a byte each: whoever reads it gets the bytes back as the characters 0 to 255
 */
enum line_form { LINE_WORD, LINE_QUOTED, LINE_JSON };

struct line {
    char *start, *at;
    size_t left;    /* for values */
    int64_t second; /* of the moments below */
    uint32_t ms;
    char clf[32], iso[24]; /* "20/Nov/2026:03:36:14 +0000", "2026-11-20T03:36:14" */
};

/* Begins at `storage` of LINE_BYTES_MAX bytes, with `fixed` (LINE_FIXED_MAX at the most) of them set aside. */
static inline void line_begin(struct line *l, char *storage, size_t fixed)
{
    l->start = l->at = storage;
    l->left = LINE_BYTES_MAX - fixed;
}

static inline size_t line_length(const struct line *l)
{
    return (size_t)(l->at - l->start);
}

/* What the server says: as it is, out of what was set aside. */
static inline void line_put(struct line *l, struct mk_str s)
{
    memcpy(l->at, s.p, s.len);
    l->at += s.len;
}

static inline void line_put_char(struct line *l, char c)
{
    *l->at++ = c;
}

void line_put_number(struct line *l, uint64_t value);
/* What a client says, or anybody. */
void line_put_value(struct line *l, struct mk_str s, enum line_form form);

/* The moment that the line speaks of: it makes the texts anew when the second has changed. */
void line_set_time(struct line *l, int64_t second, uint32_t ms);
/* "2026-11-20T03:36:14.123Z" */
void line_put_iso(struct line *l);

#endif
