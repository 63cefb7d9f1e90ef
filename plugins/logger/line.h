// SPDX-License-Identifier: Apache-2.0
/*
 * Builds a line in storage of the caller. The result is printable ASCII, whatever a client has sent.
 *
 * A part of the room is reserved for text of the server (literals, numbers). Values of clients share the rest and are
 * truncated there, so that a long one leaves some of it to those that follow.
 */
#ifndef LOGGER_LINE_H
#define LOGGER_LINE_H

#include <monkey/str.h>

#include <assert.h>

enum { LINE_BYTES_MAX = 8192, LINE_FIXED_MAX = 4096, LINE_VARIABLE_FIXED = 48, LINE_SHARE = 256 };

/*
 * How bytes are escaped that are not printable ASCII, and quotes and backslashes.
 *
 *     WORD      \xNN, blanks too: the value stays one word
 *     QUOTED    \xNN
 *     JSON      \u00NN for each byte: decoded, the characters 0 to 255 are the bytes
 */
enum line_form { LINE_WORD, LINE_QUOTED, LINE_JSON };

struct line {
    char *start, *at;
    size_t left;    /* for values */
    size_t kept;    /* of that for values which follow the next one */
    bool cut;       /* a value was truncated */
    int64_t second; /* of the texts below */
    uint32_t ms;
    char clf[32], iso[24]; /* "20/Nov/2026:03:36:14 +0000", "2026-11-20T03:36:14" */
};

/* Begins a line at `storage` of LINE_BYTES_MAX bytes, with `fixed` of them reserved. */
static inline void line_begin(struct line *l, char *storage, size_t fixed)
{
    assert(fixed <= LINE_BYTES_MAX);
    l->start = l->at = storage;
    l->left = LINE_BYTES_MAX - fixed;
    l->kept = 0;
    l->cut = false;
}

static inline size_t line_length(const struct line *l)
{
    return (size_t)(l->at - l->start);
}

/* Adds text of the server, unescaped, from the reserved bytes. */
static inline void line_put(struct line *l, struct mk_str s)
{
    assert(line_length(l) + l->left + s.len <= LINE_BYTES_MAX);
    memcpy(l->at, s.p, s.len);
    l->at += s.len;
}

static inline void line_put_char(struct line *l, char c)
{
    assert(line_length(l) + l->left < LINE_BYTES_MAX);
    *l->at++ = c;
}

void line_put_number(struct line *l, uint64_t value);
/* Adds a value of a client, escaped. */
void line_put_value(struct line *l, struct mk_str s, enum line_form form);

/* Sets the time of the line; formats the texts again if the second has changed. */
void line_set_time(struct line *l, int64_t second, uint32_t ms);
/* Adds that time as "2026-11-20T03:36:14.123Z". */
void line_put_iso(struct line *l);

#endif
